"""Use the client that openapi-python-client made of our document: URL and token are the arguments."""

import json
import sys

from wsh_client import AuthenticatedClient
from wsh_client.api.commands import post_sessions_name_run
from wsh_client.api.sessions import (
    delete_sessions_name,
    get_sessions_name_idle,
    get_sessions_name_screen,
    post_sessions,
)
from wsh_client.models import IdleAnswer, RunAnswer, RunRequest, Screen, SessionCreate

url, token = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token, timeout=120)
made = post_sessions.sync(client=client, body=SessionCreate(name="generated", command="bash --norc"))
ran = post_sessions_name_run.sync("generated", client=client, body=RunRequest(input_="echo $((6*7))"))
assert isinstance(ran, RunAnswer) and ran.output == "42" and ran.exit_code == 0, ran
screen = get_sessions_name_screen.sync("generated", client=client)
assert isinstance(screen, Screen) and screen.rows == 24 and screen.mode == "normal", screen
idle = get_sessions_name_idle.sync("generated", client=client, timeout_ms=50)
assert isinstance(idle, IdleAnswer) and isinstance(idle.screen, Screen), idle
delete_sessions_name.sync_detailed("generated", client=client)
print(json.dumps({"made": made.name}))
