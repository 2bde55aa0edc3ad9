"""A sample of the attempts to get out; all of them are tried in `make accept`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.sandbox.attempts import ATTEMPTS
from tests.support.sandbox.fight import fight, list_claims
from tests.support.sandbox.held import BackendName, each_backend
from wsh.sandbox.claim import Claim

SAMPLE = ",".join(
    """read_ssh_key read_keeper_secret read_by_symlink_in_the_workspace read_by_hard_link read_through_root_of_another_process
    read_memory_of_another_process read_system_passwords write_a_file replace_a_file link_a_file_and_write write_the_core_pattern
    change_a_mode write_protected_hooks write_protected_codex move_the_repository_away rename_over_the_config kill_by_SIGKILL
    lower_the_mark_by_prlimit lower_the_mark_by_setrlimit limit_another_process trace_another_process take_a_descriptor_by_pidfd call_mount call_new_user_namespace call_io_uring
    call_newer_than_known call_by_the_32_bit_door have_a_capability type_by_tiocsti type_by_tiocsti_with_high_bits
    open_another_terminal reach_tcp reach_udp reach_unix_path_inside reach_unix_abstract reach_unix_keeper
    send_to_unix_by_a_datagram_pair open_netlink_route_socket open_raw_socket read_shared_memory_of_system_v write_shared_memory
    make_a_setuid_program_and_run_it""".split()
)


@each_backend
@pytest.mark.parametrize("profile", ["workspace", "read-only"])
def test_a_sample_of_attempts_finds_no_way_out(backend: BackendName, profile: str) -> None:
    found = dict(fight(backend, profile, "ordinary", SAMPLE))
    end = found.pop("end")
    claims = {claim.value for claim in list_claims(backend, profile)}
    out = {name: told["why"] for name, told in found.items() if told["escaped"] and told["claim"] in claims}
    assert out == {}
    assert end["stray"] == []
    assert end["left"] == []
    assert len(found) == len(SAMPLE.split(","))


def test_there_are_enough_attempts_and_each_has_a_claim() -> None:
    assert len(ATTEMPTS) >= 120
    known = {claim.value for claim in list_claims("bubblewrap", "workspace")}
    assert {claim for claim, _, _ in ATTEMPTS.values()} <= known


def test_the_page_lists_every_attempt_and_every_claim() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text(encoding="utf-8")
    missing = [name for name in ATTEMPTS if name.replace("_", " ") not in page]
    assert missing == []
    assert [claim for claim in Claim if f"| `{claim.value}`" not in page] == []
