"""The routes that are operations: method, path, and where the published answer is less than the result."""

from __future__ import annotations

from wsh.http.route.contract_status import OWN_STATUSES, show_contract
from wsh.http.route.offer import offer
from wsh.http.route.table import HttpAnswer, Route, to_answer
from wsh.operation import (
    approval,
    capture,
    command,
    contract,
    fleet,
    hook,
    host,
    inbox,
    input,
    mode,
    notice,
    policy,
    record,
    run,
    screen,
    server,
    session,
    wait,
    wake,
    workspace,
)
from wsh.operation.element import OVERLAY, PANEL, ElementOperations
from wsh.visual.export.format import MEDIA_TYPES
from wsh.wire.model.element import Created

_ONE = "/sessions/{name}"
_FILES = ", ".join(dict.fromkeys(kind.partition(";")[0] for kind in MEDIA_TYPES.values()))


def show_killed(result: object) -> HttpAnswer:
    """Nothing is to be said of a tree that died whole."""
    survivors = getattr(result, "survivors", None)
    return to_answer(result if survivors else None, 200)


def _of_elements(kind: str, element: ElementOperations) -> tuple[Route, ...]:
    many, one, group = f"{_ONE}/{kind}", f"{_ONE}/{kind}/{{id}}", f"{kind}s"
    return (
        offer("GET", many, element.list, group),
        offer("POST", many, element.create, group, status=201, shows=Created),
        offer("DELETE", many, element.clear, group),
        offer("GET", one, element.get, group),
        offer("PUT", one, element.replace, group, shows=None),
        offer("PATCH", one, element.patch, group, shows=None),
        offer("DELETE", one, element.remove, group),
        offer("POST", f"{one}/spans", element.update_spans, group, shows=None),
        offer("POST", f"{one}/write", element.write, group, shows=None),
    )


ROUTES: tuple[Route, ...] = (
    offer("GET", "/server/info", server.get_server_info, "server"),
    offer("GET", "/server/persist", server.get_server_mode, "server"),
    offer("PUT", "/server/persist", server.set_server_mode, "server"),
    offer("POST", "/server/stop", server.stop_server, "server", status=202, in_query=True),
    offer("GET", "/sessions", session.list_sessions, "sessions"),
    offer("POST", "/sessions", session.create_session, "sessions", status=201),
    offer("GET", _ONE, session.get_session, "sessions"),
    offer("PATCH", _ONE, session.update_session, "sessions"),
    offer("DELETE", _ONE, session.kill_session, "sessions", shows=None, answer=show_killed, own_statuses=(200,)),
    offer("POST", f"{_ONE}/detach", session.detach_session, "sessions", shows=None),
    offer("POST", f"{_ONE}/input", input.send_input, "sessions", raw="data", shows=None),
    offer("POST", f"{_ONE}/keys", input.send_keys, "sessions", shows=None),
    offer("POST", f"{_ONE}/resize", session.resize, "sessions"),
    offer("GET", f"{_ONE}/screen", screen.get_screen, "sessions"),
    offer("GET", f"{_ONE}/scrollback", screen.get_scrollback, "sessions"),
    offer("GET", f"{_ONE}/idle", wait.await_idle, "sessions"),
    offer("GET", f"{_ONE}/quiesce", wait.await_idle, "sessions"),
    offer("GET", "/idle", wait.await_any_idle, "sessions"),
    offer("POST", f"{_ONE}/take_over", session.take_over, "sessions"),
    offer("POST", f"{_ONE}/hand_back", session.hand_back, "sessions"),
    offer("POST", f"{_ONE}/run", run.run_command, "commands"),
    offer("GET", f"{_ONE}/commands", command.list_commands, "commands"),
    offer("GET", f"{_ONE}/commands/{{id}}", command.get_command, "commands"),
    offer("GET", f"{_ONE}/commands/{{id}}/output", command.get_command_output, "commands"),
    offer("GET", f"{_ONE}/state", command.get_state, "commands"),
    *_of_elements("overlay", OVERLAY),
    *_of_elements("panel", PANEL),
    offer("GET", f"{_ONE}/input/mode", capture.get_input_mode, "input"),
    offer("POST", f"{_ONE}/input/capture", capture.capture_input, "input", shows=None),
    offer("POST", f"{_ONE}/input/release", capture.release_input, "input", shows=None),
    offer("GET", f"{_ONE}/input/focus", capture.get_focus, "input"),
    offer("POST", f"{_ONE}/input/focus", capture.focus, "input", shows=None),
    offer("POST", f"{_ONE}/input/unfocus", capture.unfocus, "input", shows=None),
    offer("GET", f"{_ONE}/screen_mode", mode.get_screen_mode, "screen mode"),
    offer("POST", f"{_ONE}/screen_mode/enter_alt", mode.enter_alt_screen, "screen mode", shows=None),
    offer("POST", f"{_ONE}/screen_mode/exit_alt", mode.exit_alt_screen, "screen mode", shows=None),
    offer("GET", f"{_ONE}/screenshot.svg", record.get_screenshot_svg, "recordings", media_type="image/svg+xml"),
    offer("GET", f"{_ONE}/screenshot.png", record.get_screenshot_png, "recordings", media_type="image/png"),
    offer("GET", f"{_ONE}/recording", record.get_recording, "recordings", media_type=_FILES),
    offer(
        "POST",
        "/terminal",
        contract.call_terminal,
        "contract",
        whole="request",
        answer=show_contract,
        own_statuses=OWN_STATUSES,
    ),
    offer("POST", "/workspace/{tool}", workspace.call_workspace, "workspace", whole="arguments"),
    offer("POST", "/workspace/index/export", workspace.export_index, "workspace"),
    offer("POST", "/workspace/index/import", workspace.import_index, "workspace"),
    offer("GET", "/approvals", approval.list_approvals, "approvals"),
    offer("GET", "/approvals/mode", approval.get_approval_mode, "approvals"),
    offer("PUT", "/approvals/mode", approval.set_approval_mode, "approvals"),
    offer("GET", "/approvals/{id}", approval.get_approval, "approvals"),
    offer("POST", "/approvals/{id}", approval.answer_approval, "approvals"),
    offer("POST", "/hook", hook.judge_hook, "hooks"),
    offer("POST", "/hook/ask", hook.ask_hook, "hooks"),
    offer("GET", "/inbox", inbox.list_inbox, "inbox"),
    offer("POST", "/inbox/{id}", inbox.mark_inbox, "inbox"),
    offer("POST", f"{_ONE}/wake", wake.set_wake, "inbox", status=201),
    offer("GET", "/wakes", wake.list_wakes, "inbox"),
    offer("DELETE", "/wakes/{id}", wake.cancel_wake, "inbox"),
    offer("GET", "/notices", notice.list_notices, "notices"),
    offer("POST", "/notices/test", notice.test_notice, "notices"),
    offer("GET", "/notices/rules", notice.get_notice_rules, "notices"),
    offer("PUT", "/notices/rules", notice.set_notice_rules, "notices"),
    offer("GET", "/push/key", notice.get_push_key, "notices"),
    offer("GET", "/push/subscriptions", notice.list_subscriptions, "notices"),
    offer("POST", "/push/subscriptions", notice.subscribe_push, "notices", status=201),
    offer("DELETE", "/push/subscriptions/{id}", notice.unsubscribe_push, "notices"),
    offer("GET", "/hosts", host.list_hosts, "hosts"),
    offer("PUT", "/hosts/{host}", host.add_host, "hosts"),
    offer("DELETE", "/hosts/{host}", host.remove_host, "hosts"),
    offer("GET", "/fleet", fleet.get_fleet, "hosts"),
    offer("PUT", "/fleet", fleet.join_fleet, "hosts"),
    offer("DELETE", "/fleet", fleet.leave_fleet, "hosts"),
    offer("GET", "/policy", policy.get_policy, "admin"),
    offer("GET", "/audit", policy.get_audit, "admin"),
    offer("GET", "/clients", server.list_clients, "admin"),
)
