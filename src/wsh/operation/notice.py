"""Notices: what was told and by which channel, the rules of it, and the browsers that take push. The owner's alone."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from wsh.notice.outbox import Notice
from wsh.notice.push import PushSubscription, has_push
from wsh.notice.rule import CHANNELS, NoticeRule
from wsh.operation.context import Context, Rooms
from wsh.operation.forward import Forwarding
from wsh.operation.operation import operation
from wsh.wire.model.base import Model, Shown

Kind = Literal["request", "hidden", "asks", "failed", "finished", "exited", "quiet", "told"]
ChannelName = Literal["page", "push", "desktop", "webhook", "line"]


class NoticeQuery(Model):
    after: Annotated[int, Field(ge=0, description="Only those with a higher number.")] = 0
    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class DeliveryInfo(Shown):
    channel: str
    state: Literal["due", "sending", "sent", "over", "seen", "held", "failed", "unknown"]
    tries: int
    why: str


class NoticeInfo(Shown):
    seq: int
    """Rises with every notice, over restarts too."""
    id: str
    kind: Kind
    since: float
    title: str
    text: str
    session: str | None
    request_id: str | None
    exit_code: int | None
    duration_ms: float | None
    host: str | None
    """The machine that it is of; null for this one."""
    over: bool
    """What it told of does not wait any more."""
    deliveries: list[DeliveryInfo]


class NoticeList(Shown):
    notices: list[NoticeInfo]
    newest: int
    """The highest number there is."""


class RuleBody(Model):
    """`after_s`: how long a command must have taken, or a session been silent. `into` and `line` go with the channel `line`."""

    on: Annotated[list[Kind], Field(min_length=1)]
    to: Annotated[list[ChannelName], Field(min_length=1)]
    session: Annotated[str, Field(min_length=1, max_length=200)] = "*"
    after_s: Annotated[float, Field(ge=0, le=604_800)] = 0.0
    into: Annotated[str, Field(max_length=64)] = ""
    line: Annotated[str, Field(max_length=2000)] = ""
    front: Annotated[int, Field(ge=0)] = 0


class SetNoticeRules(Model):
    """All rules at once; null goes back to the usual ones."""

    rules: Annotated[list[RuleBody], Field(max_length=100)] | None


class RuleInfo(Shown):
    on: list[str]
    to: list[str]
    session: str
    after_s: float
    into: str
    line: str
    front: int


class ChannelInfo(Shown):
    name: str
    there: bool
    """Whether it leads anywhere now."""
    leads_to: str


class NoticeRules(Shown):
    rules: list[RuleInfo]
    usual: bool
    """Whether these are the rules of somebody who has written none."""
    warning: str | None
    channels: list[ChannelInfo]


class TestNotice(Model):
    channel: ChannelName


class PushKey(Shown):
    key: str
    """What a browser's `subscribe` takes as applicationServerKey."""


class PushKeys(Model):
    p256dh: Annotated[str, Field(min_length=1, max_length=200)]
    auth: Annotated[str, Field(min_length=1, max_length=100)]


class SubscribePush(Model):
    """A PushSubscription as the browser gives it."""

    endpoint: Annotated[str, Field(min_length=1, max_length=2000)]
    keys: PushKeys
    name: Annotated[str, Field(max_length=100)] = ""


class SubscriptionId(Model):
    id: str


class SubscriptionInfo(Shown):
    id: str
    name: str
    service: str
    """The host of the push service; the endpoint itself is shown to nobody."""
    made: float


class SubscriptionList(Shown):
    subscriptions: list[SubscriptionInfo]
    available: bool
    """Whether this installation can send push."""


@operation(who="owner", manner="reads", forwarding=Forwarding(model=NoticeList))
async def list_notices(context: Context, params: NoticeQuery) -> NoticeList:
    """What was told, oldest first, with what became of it at every channel."""
    kept = context.rooms.notices.outbox.kept.values()
    found = context.rooms.notices.list_notices(params.after, params.limit)
    return NoticeList(notices=[_show(one) for one in found], newest=max((one.seq for one in kept), default=0))


@operation(who="owner", errors=("invalid_request",))
async def test_notice(context: Context, params: TestNotice) -> NoticeInfo:
    """Send a notice that says it is a test by one channel, and say what came of it."""
    return _show(await context.rooms.notices.test(params.channel))


@operation(who="owner", manner="reads")
async def get_notice_rules(context: Context) -> NoticeRules:
    """Which happenings are told, by which channels, and where the channels lead."""
    return _show_rules(context.rooms)


@operation(who="owner", errors=("session_not_found", "session_exited"))
async def set_notice_rules(context: Context, params: SetNoticeRules) -> NoticeRules:
    """Replace the rules of notices."""
    rules = None if params.rules is None else [rule.model_dump() for rule in params.rules]
    context.rooms.notices.set_rules(rules)
    return _show_rules(context.rooms)


@operation(who="owner", manner="reads", errors=("capability_missing",))
async def get_push_key(context: Context) -> PushKey:
    """The public key of this server, which a browser needs to subscribe to push. Made on first use."""
    return PushKey(key=await context.rooms.notices.pushes.get_public_key())


@operation(who="owner", manner="reads")
async def list_subscriptions(context: Context) -> SubscriptionList:
    """The browsers that take push."""
    found = context.rooms.notices.pushes.list_subscriptions()
    return SubscriptionList(subscriptions=[_show_subscription(one) for one in found], available=has_push())


@operation(who="owner", errors=("capability_missing", "resource_limit_reached"))
async def subscribe_push(context: Context, params: SubscribePush) -> SubscriptionInfo:
    """Send push to this browser from now on. Its endpoint must be https."""
    keys = params.keys
    made = await context.rooms.notices.pushes.subscribe(params.endpoint, keys.p256dh, keys.auth, params.name)
    return _show_subscription(made)


@operation(who="owner", errors=("not_found",))
async def unsubscribe_push(context: Context, params: SubscriptionId) -> None:
    """Send no more push to a browser."""
    await context.rooms.notices.pushes.unsubscribe(params.id)


def _show(notice: Notice) -> NoticeInfo:
    return NoticeInfo(
        seq=notice.seq,
        id=notice.id,
        kind=notice.kind,
        since=notice.since,
        title=notice.title,
        text=notice.text,
        session=notice.session,
        request_id=notice.request_id,
        exit_code=notice.exit_code,
        duration_ms=notice.duration_ms,
        host=notice.host,
        over=notice.over,
        deliveries=[
            DeliveryInfo(channel=channel, state=one.state, tries=one.tries, why=one.why)
            for channel, one in notice.deliveries.items()
        ],
    )


def _show_rules(rooms: Rooms) -> NoticeRules:
    notices, book = rooms.notices, rooms.notices.book
    return NoticeRules(
        rules=[_show_rule(rule) for rule in book.rules],
        usual=book.is_usual,
        warning=book.warning,
        channels=[ChannelInfo(name=c, there=notices.is_there(c), leads_to=notices.describe(c)) for c in CHANNELS],
    )


def _show_rule(rule: NoticeRule) -> RuleInfo:
    return RuleInfo(
        on=list(rule.on),
        to=list(rule.to),
        session=rule.session,
        after_s=rule.after_s,
        into=rule.into,
        line=rule.line,
        front=rule.front,
    )


def _show_subscription(one: PushSubscription) -> SubscriptionInfo:
    from urllib.parse import urlsplit

    return SubscriptionInfo(id=one.id, name=one.name, service=urlsplit(one.endpoint).hostname or "", made=one.made)
