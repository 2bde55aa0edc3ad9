"""The page on a phone: installable, told by push while it is closed, a request approved in two taps, ten tasks by touch alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, Page, Route, Worker, expect

from tests.http.test_server_approval import ask, read_end, shown
from tests.support.notice.receiver import Receiver, running_receiver
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from tests.support.web.browser import open_page, own_page
from tests.web.test_access import AXE, grave
from wsh.wire.system.place import find_places

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
# A browser subscribes at its vendor's service, which cannot be reached here: this one has keys of ours and an endpoint on loopback.
STUB = """
if (window.PushManager) {
  const given = GIVEN;
  const made = { endpoint: given.endpoint, toJSON: () => given, unsubscribe: async () => { delete sessionStorage.subscribed; return true; } };
  const own = PushManager.prototype;
  own.getSubscription = async () => (sessionStorage.subscribed ? made : null);
  own.subscribe = async (options) => {
    if (sessionStorage.subscribed) throw new DOMException("there is one for other keys", "InvalidStateError");
    window.subscribedWith = [options.userVisibleOnly, new Uint8Array(options.applicationServerKey).length];
    sessionStorage.subscribed = "yes";
    return made;
  };
}
"""


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with running_receiver() as running:
        yield running


@pytest.fixture(scope="module")
def headless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    root = tmp_path_factory.mktemp("phone")
    environ = {
        "WSH_APPROVALS_SERVER": "true",
        "WSH_NOTIFY_PUSH_LOOPBACK": "true",
        "WSH_NOTIFY_PRESENT_S": "0",
        "WSH_INBOX_MIN_COMMAND_S": "3600",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
            (root / name).mkdir(mode=0o700)
            patch.setenv(variable, str(root / name))
        with running_server(find_places(), check_left=False, environ=environ) as running:
            yield running


@pytest.fixture
def page(headless: RunningServer, browser: Browser) -> Iterator[Page]:
    with open_page(browser, **PHONE) as watched:
        watched.page.goto(str(headless.request("POST", "/auth/link").json["url"]))
        yield watched.page
    clear(headless)


@pytest.fixture
def page_with_worker(headless: RunningServer, whole_browser: Browser, receiver: Receiver) -> Iterator[Page]:
    with own_page(whole_browser, **PHONE) as watched:
        watched.page.context.grant_permissions(["notifications"], origin=headless.url)
        watched.page.add_init_script(STUB.replace("GIVEN", json.dumps(receiver.subscription())))
        watched.page.goto(str(headless.request("POST", "/auth/link").json["url"]))
        yield watched.page
    clear(headless)


def clear(headless: RunningServer) -> None:
    for one in headless.get("/approvals")["requests"]:
        if one["answerable"]:
            headless.request("POST", f"/approvals/{one['id']}", {"digest": one["digest"], "decision": "decline"})
    for info in headless.get("/sessions"):
        headless.request("DELETE", f"/sessions/{info['name']}")


def get_worker(page: Page) -> Worker:
    wait_until(lambda: page.evaluate("navigator.serviceWorker.ready.then((one) => one.active !== null)"), "the worker")
    wait_until(lambda: page.context.service_workers, "the worker")
    return page.context.service_workers[0]


def deliver(page: Page, cdp: CDPSession, ids: list[str], data: dict[str, Any], origin: str) -> None:
    wait_until(lambda: page.evaluate("1") and ids, "the worker's registration")
    cdp.send("ServiceWorker.deliverPushMessage", {"origin": origin, "registrationId": ids[0], "data": json.dumps(data)})


def watch_registrations(page: Page) -> tuple[CDPSession, list[str]]:
    cdp = page.context.new_cdp_session(page)
    ids: list[str] = []
    cdp.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: ids.extend(one["registrationId"] for one in event["registrations"] if not one["isDeleted"]),
    )
    cdp.send("ServiceWorker.enable")
    return cdp, ids


SHOWN = "self.registration.getNotifications().then((all) => all.map((one) => [one.tag, one.title, one.body]))"
STATE = """caches.open("wsh-shown").then((shown) => shown.keys()).then((marks) =>
  [Notification.permission, self.registration.active?.state, marks.map((mark) => mark.url)])"""
TAP = """self.registration.getNotifications().then((all) => {
  self.dispatchEvent(new NotificationEvent("notificationclick", { notification: all[0] }));
})"""


def test_a_request_reaches_a_closed_page_by_push_and_two_taps_approve_it(
    page_with_worker: Page, headless: RunningServer, receiver: Receiver
) -> None:
    page = page_with_worker
    cdp, ids = watch_registrations(page)
    worker = get_worker(page)
    page.get_by_role("button", name="Sessions").first.tap()
    page.get_by_role("button", name="Queue").first.tap()
    page.get_by_role("button", name="Tell this browser").tap()
    expect(page.get_by_text("This browser is told")).to_be_visible()
    assert page.evaluate("window.subscribedWith") == [True, 65]
    key = headless.get("/push/key")["key"]

    answer = ask(headless, "sh", "-c", "echo first line; echo second line")
    shown(headless, answer)
    (push,) = wait_until(lambda: receiver.pushes(key), "the push")

    def is_shown() -> bool:
        deliver(page, cdp, ids, push, headless.url)  # a browser may drop what comes while its worker starts
        return bool(worker.evaluate(SHOWN))

    wait_until(is_shown, "the notice", seen=lambda: [ids, worker.evaluate(STATE)])
    assert worker.evaluate(SHOWN) == [[push["id"], "wsh", "An agent asks for your approval."]]
    # The server died in the moment of sending, and its successor sent it again.
    deliver(page, cdp, ids, push, headless.url)
    assert len(worker.evaluate(SHOWN)) == 1

    page.get_by_role("button", name="Back to the terminal").tap()
    worker.evaluate(TAP)  # the first tap
    card = page.locator(".approval:not(.over)")
    expect(card).to_contain_text("echo second line")
    expect(card).to_be_focused()
    wait_until(lambda: worker.evaluate(SHOWN) == [], "the notice to be gone")
    page.evaluate(AXE.read_text())
    assert grave(page) == []
    card.get_by_role("button", name="Run once").tap()  # the second
    over = page.locator(".approval.over").first
    expect(over.get_by_label("Output")).to_contain_text("second line")
    assert grave(page) == []
    assert read_end(headless, answer)["result"]["exit_code"] == 0
    deliver(page, cdp, ids, push, headless.url)
    assert worker.evaluate(SHOWN) == [], "an id is shown once"
    page.get_by_role("button", name="Stop").tap()
    expect(page.get_by_role("button", name="Tell this browser")).to_be_visible()
    assert headless.get("/push/subscriptions")["subscriptions"] == []


def test_a_browser_that_the_server_does_not_know_any_more_is_not_said_to_be_told(
    page_with_worker: Page, headless: RunningServer
) -> None:
    page = page_with_worker
    get_worker(page)
    open_card(page)
    page.get_by_role("button", name="Tell this browser").tap()
    expect(page.get_by_text("This browser is told")).to_be_visible()
    page.reload()
    open_card(page)
    expect(page.get_by_text("This browser is told")).to_be_visible()
    (one,) = headless.get("/push/subscriptions")["subscriptions"]
    assert headless.request("DELETE", f"/push/subscriptions/{one['id']}").status == 204
    page.reload()
    open_card(page)
    page.get_by_role("button", name="Tell this browser").tap()
    expect(page.get_by_text("This browser is told")).to_be_visible()
    assert [one["id"] for one in headless.get("/push/subscriptions")["subscriptions"]] == [one["id"]]
    page.get_by_role("button", name="Stop").tap()
    expect(page.get_by_role("button", name="Tell this browser")).to_be_visible()


def test_the_page_can_be_installed_and_opens_without_its_server(
    page_with_worker: Page, headless: RunningServer
) -> None:
    page = page_with_worker
    get_worker(page)
    cdp = page.context.new_cdp_session(page)
    manifest = cdp.send("Page.getAppManifest")
    assert manifest["errors"] == [] and json.loads(manifest["data"])["display"] == "standalone"
    assert cdp.send("Page.getInstallabilityErrors")["installabilityErrors"] in (
        [],
        [{"errorId": "in-incognito", "errorArguments": []}],
    )
    for icon in json.loads(manifest["data"])["icons"]:
        assert page.evaluate(
            "(src) => fetch(src).then((one) => one.ok && one.headers.get('content-type'))", icon["src"]
        )
    page.reload()
    expect(page.get_by_role("button", name="Sessions").first).to_be_visible()
    page.context.set_offline(True)
    page.reload()
    expect(page.locator(".banner")).to_be_visible()
    page.context.set_offline(False)
    expect(page.locator(".banner")).to_have_count(0)


def test_a_notice_of_a_request_of_another_machine_opens_its_card(page: Page, headless: RunningServer) -> None:
    answer = ask(headless, "true")
    request = shown(headless, answer)

    def give(route: Route) -> None:
        there = route.fetch()
        found = there.json()
        for one in found["requests"]:
            one["id"] = f"gpu1.lab/{one['id']}"
        route.fulfill(response=there, json=found)

    page.route("**/approvals", give)
    page.goto(f"{headless.url}/ui/#notice=gpu1.lab%2Frequest.{request['id']}")
    page.reload()
    expect(page.locator(".approval:not(.over)")).to_be_focused()


# Buttons and fields in sight that something else lies over.
COVERED = """() => [...document.querySelectorAll('.page button, .page input, .page summary')].filter(e => {
  const r = e.getBoundingClientRect();
  const [x, y] = [r.x + r.width / 2, r.y + r.height / 2];
  if (!e.checkVisibility({ visibilityProperty: true }) || e.closest('details > div') || x < 0 || x > innerWidth || y < 0 || y > innerHeight) return false;
  const top = document.elementFromPoint(x, y);
  return !e.contains(top) && !top?.contains(e);
}).map(e => e.ariaLabel || e.textContent)"""


def test_notices_come_one_at_a_time_cover_nothing_and_are_dismissed(page: Page, headless: RunningServer) -> None:
    body = {"name": "work", "command": "bash --norc --noprofile", "env": {"PS1": "$ "}}
    assert headless.request("POST", "/sessions", body).status == 201
    wait_until(lambda: "$" in page.evaluate("wshText()"), "the prompt")
    field = page.get_by_label("A line to send")
    notice = page.locator(".notice, .toasts > :last-child")
    field.fill("echo $((20+22))")
    field.press("Enter")
    wait_until(lambda: "\n42" in page.evaluate("wshText()"), "the output")
    answer = ask(headless, "true")
    expect(notice).to_have_text("An agent asks for your approval. Show×")
    page.locator(".menu summary").tap()
    page.get_by_role("button", name="Find…").tap()
    expect(page.locator(".find")).to_be_visible()
    assert page.evaluate(COVERED) == []
    # What is told for a moment takes its place, and no rows from the session.
    wait_until(lambda: headless.get("/sessions/work")["rows"] == page.evaluate("wshSize().rows"), "the size")
    page.locator(".menu summary").tap()
    page.get_by_role("button", name="Copy what is shown").tap()
    expect(page.locator(".toasts > :last-child")).to_be_visible()
    expect(page.locator(".notice")).to_be_hidden()
    assert page.evaluate(COVERED) == []
    dismiss_told(page)
    expect(page.locator(".toasts > *")).to_have_count(0)
    page.locator(".notice").get_by_role("button", name="Dismiss").tap()
    expect(notice).to_have_count(0)
    assert headless.get(f"/approvals/{answer['result']['approval_id']}")["state"] == "waiting", (
        "only the notice is gone"
    )
    page.get_by_role("button", name="Sessions").first.tap()
    page.get_by_role("button", name="Queue").first.tap()
    page.locator(".approval:not(.over)").get_by_role("button", name="Decline", exact=True).tap()
    wait_until(lambda: read_end(headless, answer), "the answer")


def test_ten_tasks_by_touch_alone(page: Page, headless: RunningServer, tmp_path: Path) -> None:
    def open_queue() -> None:
        page.get_by_role("button", name="Sessions").first.tap()
        page.get_by_role("button", name="Queue").first.tap()

    # 1. open a session
    page.get_by_role("button", name="New session").first.tap()
    page.get_by_role("dialog").get_by_label("Name").fill("work")
    page.get_by_role("dialog").get_by_label("Command", exact=False).first.fill("bash --norc --noprofile")
    page.get_by_role("dialog").get_by_role("button", name="Start").tap()
    wait_until(lambda: [one["name"] for one in headless.get("/sessions")] == ["work"], "the session")
    wait_until(lambda: headless.get("/sessions/work")["state"] == "idle", "its prompt")
    # 2. type into it
    page.locator(".xterm").first.tap()
    page.keyboard.type("read -p 'go on? ' answer")
    # 3. press a key that phones have not
    page.get_by_role("toolbar").get_by_role("button").first.wait_for()
    page.keyboard.press("Enter")
    wait_until(lambda: headless.get("/sessions/work")["state"] == "asks", "the question")
    # 4. see what waits
    open_queue()
    row = page.locator(".inbox .row").first
    expect(row).to_contain_text("go on?")
    # 5. snooze it
    page.get_by_role("button", name="Snooze work").tap()
    expect(page.locator(".inbox .row")).to_have_count(0)
    assert (
        headless.request(
            "POST", f"/inbox/{headless.get('/inbox?all=true')['items'][0]['id']}", {"action": "restore"}
        ).status
        == 200
    )
    # 6. open what asks, and answer
    expect(row).to_be_visible()
    row.tap()
    page.keyboard.type("yes\n")
    wait_until(lambda: headless.get("/sessions/work")["state"] == "idle", "the answer to be taken")
    # 7. see all sessions at once
    page.get_by_role("button", name="Sessions").first.tap()
    page.get_by_role("button", name="Grid").first.tap()
    expect(page.locator(".tile")).to_have_count(1)
    page.get_by_role("button", name="Back to the terminal").tap()
    # 8. a command that failed while one looked elsewhere is told, and done
    open_queue()
    body = {"input": "sh -c 'exit 3'", "max_wait_ms": 60_000}
    assert headless.request("POST", "/sessions/work/run", body, timeout=90).json["exit_code"] == 3
    page.locator(".inbox .entry").filter(has_text="failed 3").get_by_role("button", name="Done work").tap()
    expect(page.locator(".inbox .row")).to_have_count(0)
    # 9. decline a request
    answer = ask(headless, "touch", str(tmp_path / "never"))
    card = page.locator(".approval:not(.over)")
    card.get_by_role("button", name="Decline", exact=True).tap()
    wait_until(
        lambda: headless.get(f"/approvals/{answer['result']['approval_id']}")["state"] == "declined", "the answer"
    )
    # 10. approve one
    answer = ask(headless, "echo", "all of it")
    card.get_by_role("button", name="Run once").tap()
    expect(page.locator(".approval.over").first.get_by_label("Output")).to_contain_text("all of it")
    page.evaluate(AXE.read_text())
    assert grave(page) == []


def dismiss_told(page: Page) -> None:
    """What is told goes by itself, too: on a busy machine it may be gone before a finger gets there."""
    page.locator(".toasts").get_by_role("button", name="Dismiss").evaluate_all(
        "all => all.forEach((one) => one.click())"
    )


def open_card(page: Page) -> None:
    page.get_by_role("button", name="Sessions").first.tap()
    page.get_by_role("button", name="Queue").first.tap()


def state_of(headless: RunningServer, answer: dict[str, Any]) -> str:
    return str(headless.get(f"/approvals/{answer['result']['approval_id']}")["state"])


CLASSES = """e => {
  window.classes = [];
  new MutationObserver(() => window.classes.push(e.className.trim())).observe(e, {attributes: true});
}"""


def test_a_finger_that_moves_on_from_a_button_that_is_held_approves_nothing(
    page: Page, headless: RunningServer
) -> None:
    answer = ask(headless, "rm", "-rf", "nothing-here")
    shown(headless, answer)
    open_card(page)
    button = page.get_by_role("button", name="Hold to run once")
    cdp = page.context.new_cdp_session(page)
    for by in (-60, 60):
        button.scroll_into_view_if_needed()
        button.evaluate(CLASSES)
        box = button.bounding_box()
        assert box is not None
        x, y = box["x"] + 40, box["y"] + 22
        cdp.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        cdp.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": y + by}]})
        wait_until(
            lambda: page.evaluate("[...new Set(window.classes)]") == ["hold holding", "hold"],
            "the end of holding",
            seen=lambda: page.evaluate("window.classes"),
        )
        assert state_of(headless, answer) == "waiting"
        cdp.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.get_by_role("button", name="Decline", exact=True).tap()
    wait_until(lambda: state_of(headless, answer) == "declined", "the answer")


PRESS = (
    "all => all.forEach(e => e.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true, detail: 1})))"
)
# A finger that comes down at the moment in which the first card goes.
PRESS_AS_IT_MOVES = """gone => {
  const list = document.querySelector('.approvals ul');
  new MutationObserver((_, observer) => {
    if (list.querySelector(`.approval:not(.over)[data-request="${gone}"]`)) return;
    observer.disconnect();
    const button = [...list.querySelectorAll('.approval:not(.over) button')].find(e => e.textContent === 'Run once');
    button.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true, detail: 1}));
  }).observe(list, {childList: true, subtree: true, attributes: true});
}"""


def test_a_press_on_a_request_that_has_just_moved_there_runs_nothing(page: Page, headless: RunningServer) -> None:
    first, second = ask(headless, "echo", "first"), ask(headless, "echo", "second")
    one, _ = shown(headless, first), shown(headless, second)
    open_card(page)
    expect(page.get_by_role("button", name="Run once")).to_have_count(2)
    page.evaluate(PRESS_AS_IT_MOVES, one["id"])
    body = {"digest": one["digest"], "decision": "decline"}
    assert headless.request("POST", f"/approvals/{one['id']}", body).status == 200
    expect(page.get_by_text("The requests moved as you pressed")).to_be_visible()
    assert state_of(headless, second) == "waiting"

    def press() -> bool:
        page.get_by_role("button", name="Run once").evaluate_all(PRESS)
        return state_of(headless, second) == "approved"

    wait_until(press, "the request that stays where it is")


def test_a_notice_moves_no_request_below_the_finger(page: Page, headless: RunningServer) -> None:
    first, second = ask(headless, "echo", "first"), ask(headless, "echo", "second")
    shown(headless, first), shown(headless, second)
    open_card(page)
    expect(page.locator(".approval:not(.over)")).to_have_count(2)
    button = page.get_by_role("button", name="Run once").first
    place = "e => e.getBoundingClientRect().top"
    before = button.evaluate(place)
    page.get_by_role("button", name="Decline", exact=True).last.dispatch_event("click")
    expect(page.locator(".toasts > *")).to_have_count(1)
    wait_until(lambda: state_of(headless, second) == "declined", "the answer")
    wait_until(lambda: button.evaluate(place) == before, "the request where it was")
    dismiss_told(page)
    expect(page.locator(".toasts > *")).to_have_count(0)
    wait_until(lambda: button.evaluate(place) == before, "the request where it was")
    page.get_by_role("button", name="Decline", exact=True).tap()
    wait_until(lambda: state_of(headless, first) == "declined", "the answer")


def test_the_field_hides_what_is_typed_at_a_hidden_prompt(page: Page, headless: RunningServer) -> None:
    body = {
        "name": "work",
        "command": "bash --norc --noprofile -c 'read -s -p Password: word; echo; echo $word; exec cat'",
    }
    assert headless.request("POST", "/sessions", body).status == 201
    field = page.get_by_label("A line to send")
    expect(field).to_have_attribute("type", "password")
    field.fill("open sesame")
    field.press("Enter")
    wait_until(lambda: "\nopen sesame" in page.evaluate("wshText()"), "the word")
    expect(field).to_have_attribute("type", "text")
    expect(field).to_have_value("")
