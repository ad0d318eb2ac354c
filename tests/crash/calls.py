"""All that children of the nursery may be asked to do, by name."""

from __future__ import annotations

from tests.crash.corruption import furnished, probe, probe_bytes, probe_row
from tests.crash.crowds import insert_until_killed
from tests.crash.hunger import make_large, starve_on
from tests.crash.killloop import write_until_killed
from tests.crash.listappend import append_to_lists
from tests.crash.lyingdisk import furnish, probe_disk
from tests.crash.powercuts import (
    check_after_cut,
    check_loop,
    cut_at_step,
    make_loop_graph,
    record_recovery,
    recover_and_cut,
)
from tests.crash.scarcity import run_with_few_files, starve
from tests.crash.scenes import (
    act,
    armed,
    churn,
    create_branch,
    increment,
    loop,
    perform,
    prepare,
    prepare_between,
    read_often,
    reopen,
    watch,
    watch_reopen,
    write_again,
    write_often,
)
from tests.crash.schemascenes import evolve, keep_up
from tests.crash.stepcalls import (
    attempt,
    check_case,
    fail_at_step,
    kill_at_step,
    look,
    look_and_reopen,
    record_steps,
)
from tests.support.concurrenthistories import take_part
from tests.universe.children import act_in_universe

__all__ = [
    "act",
    "act_in_universe",
    "append_to_lists",
    "armed",
    "attempt",
    "check_after_cut",
    "check_case",
    "check_loop",
    "churn",
    "create_branch",
    "cut_at_step",
    "evolve",
    "fail_at_step",
    "furnish",
    "furnished",
    "increment",
    "insert_until_killed",
    "keep_up",
    "kill_at_step",
    "look",
    "look_and_reopen",
    "loop",
    "make_large",
    "make_loop_graph",
    "perform",
    "prepare",
    "prepare_between",
    "probe",
    "probe_bytes",
    "probe_disk",
    "probe_row",
    "read_often",
    "record_recovery",
    "record_steps",
    "recover_and_cut",
    "reopen",
    "run_with_few_files",
    "starve",
    "starve_on",
    "take_part",
    "watch",
    "watch_reopen",
    "write_again",
    "write_often",
    "write_until_killed",
]
