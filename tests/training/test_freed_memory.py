from __future__ import annotations

import platform
import subprocess
import sys

import pytest

COUNT_FAULTS = """
import resource, sys
import torch
from arcwise.training.freed_memory import keep_freed_memory

if sys.argv[1] == "keep":
    assert keep_freed_memory()

def step():
    # Blocks past the 32 MiB up to which the C library learns by itself to keep what is freed.
    tensors = [torch.ones(64 * 2**20, dtype=torch.uint8) for _ in range(3)]

step()
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(3):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(mode: str) -> int:
    run = subprocess.run([sys.executable, "-c", COUNT_FAULTS, mode], capture_output=True, text=True, check=True)
    return int(run.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only the GNU C library has the switch")
def test_a_step_that_repeats_fetches_few_new_pages() -> None:
    assert faults("keep") < faults("leave") / 4
