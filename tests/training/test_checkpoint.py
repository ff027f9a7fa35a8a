from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from arcwise.errors import CheckpointError, ConfigError
from arcwise.training.checkpoint import Checkpoint, clean_folder, latest_checkpoint, save_checkpoint

KILLS = int(os.environ.get("ARCWISE_TEST_KILLS", "20"))


def checkpoint_of(step: int, size: int = 100) -> Checkpoint:
    """A checkpoint whose every part tells its step."""
    return Checkpoint(step, {"weight": torch.full((size,), float(step)), "count": torch.tensor(step)}, {"step": step})


def is_whole(checkpoint: Checkpoint | None) -> bool:
    return (
        checkpoint is not None
        and checkpoint.state == {"step": checkpoint.step}
        and int(checkpoint.tensors["count"]) == checkpoint.step
        and bool((checkpoint.tensors["weight"] == checkpoint.step).all())
    )


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def files_of(*steps: int) -> list[str]:
    return sorted(f"step-{step:08d}.{ending}" for step in steps for ending in ("json", "safetensors"))


def no_warning(text: str) -> None:
    raise AssertionError(text)


# ---- saving and reading


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Path) -> None:
    tensors = {
        "f32": torch.randn(3, 4),
        "f64": torch.randn(2, dtype=torch.float64),
        "bf16": torch.randn(5).bfloat16(),
        "f16": torch.randn(5).half(),
        "i64": torch.tensor([-(2**63), 2**63 - 1]),
        "bool": torch.tensor([True, False]),
        "rng": torch.get_rng_state(),
        "0-d": torch.tensor(3.5),
        "empty": torch.empty(0, 7),
        "special": torch.tensor([float("inf"), float("nan"), -0.0]),
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }
    state: dict[str, Any] = {
        "floats": [0.1, float("inf"), -0.0],
        "none": None,
        "yes": True,
        "big": 2**100,
        "text": "θ \ud800",
        "in": {"": []},
    }
    save_checkpoint(tmp_path, Checkpoint(1200, tensors, state))
    back = latest_checkpoint(tmp_path, warn=no_warning)
    assert back is not None
    assert back.step == 1200
    assert repr(back.state) == repr(state)
    assert set(back.tensors) == set(tensors)
    for name, tensor in tensors.items():
        assert back.tensors[name].dtype == tensor.dtype
        assert back.tensors[name].shape == tensor.shape
        assert back.tensors[name].view(torch.uint8).equal(tensor.detach().view(torch.uint8)) if tensor.dim() else True
        assert torch.equal(back.tensors[name].nan_to_num(), tensor.nan_to_num())
    assert names(tmp_path) == files_of(1200)


def test_shared_expanded_and_channels_last_tensors_are_saved_by_value(tmp_path: Path) -> None:
    base = torch.arange(12.0)
    picture = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    tensors = {
        "base": base,
        "same": base,
        "view": base[3:5],
        "turned": base.reshape(3, 4).T,
        "one": torch.ones(1).expand(9),
        "picture": picture,
    }
    save_checkpoint(tmp_path, Checkpoint(0, tensors, {}))
    back = latest_checkpoint(tmp_path)
    assert back is not None
    assert all(torch.equal(back.tensors[name], tensor) for name, tensor in tensors.items())
    picture.copy_(back.tensors["picture"])
    assert picture.is_contiguous(memory_format=torch.channels_last)


def test_nothing_saved_is_none_and_reading_makes_no_folder(tmp_path: Path) -> None:
    assert latest_checkpoint(tmp_path) is None
    assert latest_checkpoint(tmp_path / "absent") is None
    assert names(tmp_path) == []


def test_the_newest_two_are_kept_unless_told_otherwise(tmp_path: Path) -> None:
    for step in (1, 2, 3, 10**8):
        save_checkpoint(tmp_path, checkpoint_of(step))
    assert names(tmp_path) == files_of(3, 10**8)
    save_checkpoint(tmp_path, checkpoint_of(10**8 + 1), keep=1)
    assert names(tmp_path) == files_of(10**8 + 1)


def test_saving_behind_later_checkpoints_makes_the_saved_one_the_newest(tmp_path: Path) -> None:
    for step in (10, 20, 30):
        save_checkpoint(tmp_path, checkpoint_of(step), keep=3)
    save_checkpoint(tmp_path, checkpoint_of(15))
    assert names(tmp_path) == files_of(10, 15)
    newest = latest_checkpoint(tmp_path)
    assert newest is not None
    assert newest.step == 15


def test_saving_a_step_again_never_writes_over_the_tensors_in_use(tmp_path: Path) -> None:
    for value in range(4):
        before = {path: path.stat().st_ino for path in tmp_path.glob("*.safetensors")}
        save_checkpoint(tmp_path, Checkpoint(5, {"value": torch.tensor(value)}, {}))
        back = latest_checkpoint(tmp_path, warn=no_warning)
        assert back is not None
        assert int(back.tensors["value"]) == value
        assert not any(path.exists() for path in before)
        assert len(names(tmp_path)) == 2


def test_a_damaged_checkpoint_does_not_count_as_one_that_is_kept(tmp_path: Path) -> None:
    for step in (1, 2):
        save_checkpoint(tmp_path, checkpoint_of(step))
    (tmp_path / "step-00000002.safetensors").write_bytes(b"cut")
    save_checkpoint(tmp_path, checkpoint_of(3))
    assert names(tmp_path) == files_of(1, 3)


def test_what_interrupted_saves_left_is_cleared_away_and_strange_files_are_not(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, checkpoint_of(1))
    orphans = [
        ".step-00000002.safetensors.0a1b2c3d.partial",
        "step-00000002.safetensors",
        "step-00000001-again.safetensors",
    ]
    strange = ["notes.txt", "step-by-step.safetensors", "model.safetensors"]
    for name in orphans + strange:
        (tmp_path / name).write_bytes(b"x")
    assert is_whole(latest_checkpoint(tmp_path, warn=no_warning))
    clean_folder(tmp_path)
    assert names(tmp_path) == sorted(files_of(1) + strange)


def test_a_nonsensical_keep_or_step_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="keep must be at least 1; got 0"):
        save_checkpoint(tmp_path, checkpoint_of(1), keep=0)
    with pytest.raises(ConfigError, match="step must be 0 or more; got -1"):
        save_checkpoint(tmp_path, checkpoint_of(-1))


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"a": [{1: 2}]}, r"state\['a'\]\[0\] of the checkpoint is a dict with keys that are not strings"),
        ({"a": (1, 2)}, r"state\['a'\] of the checkpoint is of type tuple"),
        ({"p": Path()}, "PosixPath|WindowsPath"),
    ],
)
def test_state_that_json_would_change_is_refused(tmp_path: Path, state: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        save_checkpoint(tmp_path, Checkpoint(0, {}, state))
    assert names(tmp_path) == []


def test_a_sparse_tensor_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"the tensor gradient is sparse .* Call to_dense"):
        save_checkpoint(tmp_path, Checkpoint(0, {"gradient": torch.eye(2).to_sparse()}, {}))


# ---- damage


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoints"
    for step in (1, 2):
        save_checkpoint(folder, checkpoint_of(step))
    return folder


@pytest.mark.parametrize("ending", ["safetensors", "json"])
def test_every_flipped_bit_and_every_cut_is_noticed(saved: Path, ending: str) -> None:
    path = saved / f"step-00000002.{ending}"
    raw = path.read_bytes()
    places = [*range(0, len(raw), 7), len(raw) - 1]
    damaged = [raw[:at] + bytes([raw[at] ^ (1 << at % 8)]) + raw[at + 1 :] for at in places]
    damaged += [raw[:at] for at in places] + [raw + b"\n", raw + b"\0", raw * 2]
    for content in damaged:
        path.write_bytes(content)
        warnings: list[str] = []
        back = latest_checkpoint(saved, warn=warnings.append)
        assert back is not None
        assert back.step == 1
        assert is_whole(back)
        assert len(warnings) == 1
        assert re.search(rf"step-00000002\.{ending} (has|is cut off).*Going on from the one of step 1", warnings[0])
    path.write_bytes(raw)
    newest = latest_checkpoint(saved, warn=no_warning)
    assert newest is not None
    assert newest.step == 2


def test_a_missing_tensor_file_falls_back_to_the_checkpoint_before(saved: Path) -> None:
    (saved / "step-00000002.safetensors").unlink()
    with pytest.warns(UserWarning, match=r"step-00000002\.safetensors is missing\. Going on from the one of step 1"):
        assert is_whole(latest_checkpoint(saved))


def test_tensors_swapped_between_checkpoints_are_noticed(saved: Path) -> None:
    shutil.copy(saved / "step-00000001.safetensors", saved / "step-00000002.safetensors")
    with pytest.warns(UserWarning, match="SHA-256 does not match"):
        back = latest_checkpoint(saved)
    assert back is not None
    assert back.step == 1


def test_a_renamed_manifest_is_noticed(saved: Path) -> None:
    shutil.copy(saved / "step-00000001.json", saved / "step-00000002.json")
    with pytest.warns(UserWarning, match="is the manifest of step 1 under another name"):
        assert is_whole(latest_checkpoint(saved))


def test_when_every_checkpoint_is_damaged_the_error_names_each_file_and_how(saved: Path) -> None:
    (saved / "step-00000002.safetensors").write_bytes(b"short")
    (saved / "step-00000001.json").write_text("{}")
    with pytest.raises(CheckpointError) as caught:
        latest_checkpoint(saved)
    assert re.search(
        r"no checkpoint in .*checkpoints can be used: step-00000002\.safetensors has 5 bytes instead of \d+; "
        r"step-00000001\.json has changed since it was written .* --out",
        str(caught.value),
    )


def test_a_checkpoint_of_a_later_format_is_named_as_such(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arcwise.training.checkpoint.FORMAT", 2)
    save_checkpoint(saved.with_name("later"), checkpoint_of(3))
    monkeypatch.undo()
    shutil.copytree(saved.with_name("later"), saved, dirs_exist_ok=True)
    with pytest.warns(
        UserWarning, match=r"step-00000003\.json is in format 2, while this version of arcwise reads format 1"
    ):
        assert is_whole(latest_checkpoint(saved))


# ---- failing system calls


def failing_at(monkeypatch: pytest.MonkeyPatch, call: str, at: int, number: int) -> None:
    """Make the `at`-th of the system calls named `call` fail as the kernel would."""
    original, count = getattr(os, call), 0

    def maybe_fail(*arguments: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        if count == at:
            raise OSError(number, os.strerror(number))
        return original(*arguments, **options)

    monkeypatch.setattr(os, call, maybe_fail)


# One save: tensors (open, fsync, rename, open and fsync the folder), then the manifest in the same way.
FAULTS = [("open", at) for at in range(1, 5)] + [("fsync", at) for at in range(1, 5)] + [("replace", 1), ("replace", 2)]


@pytest.mark.parametrize(("call", "at"), FAULTS)
def test_a_failure_at_any_system_call_leaves_a_whole_checkpoint(
    saved: Path, monkeypatch: pytest.MonkeyPatch, call: str, at: int
) -> None:
    failing_at(monkeypatch, call, at, errno.EIO)
    with pytest.raises(CheckpointError, match=r"step 3 could not be saved in .*: Input/output error\. Check the disk"):
        save_checkpoint(saved, checkpoint_of(3))
    monkeypatch.undo()
    assert set(names(saved)) >= set(files_of(1, 2))
    assert not list(saved.glob(".*"))
    assert is_whole(latest_checkpoint(saved, warn=no_warning))
    save_checkpoint(saved, checkpoint_of(4))
    assert latest_checkpoint(saved, warn=no_warning) is not None
    assert set(names(saved)) <= set(files_of(2, 3, 4))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (
            errno.ENOSPC,
            r"the disk is full\. Free 0\.1 MB or more, then go on with --resume; earlier checkpoints are intact",
        ),
        (errno.EDQUOT, "the disk quota is used up"),
        (errno.EROFS, r"the file system is read-only\. Choose another folder with --out"),
        (errno.EACCES, r"the folder may not be written to\. Change its permissions"),
    ],
)
def test_what_the_system_said_becomes_a_plain_sentence(
    saved: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    failing_at(monkeypatch, "fsync", 1, number)
    with pytest.raises(CheckpointError, match=words):
        save_checkpoint(saved, checkpoint_of(3))


def test_the_manifest_is_renamed_last_and_old_files_go_only_after_it_is_durable(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    originals = {name: getattr(os, name) for name in ("fsync", "replace", "unlink")}

    def fsync(descriptor: int) -> None:
        calls.append("sync folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "sync file")
        originals["fsync"](descriptor)

    def replace(source: Path, target: Path) -> None:
        calls.append(f"rename {target.suffix}")
        originals["replace"](source, target)

    def unlink(path: Path, **options: Any) -> None:
        calls.append(f"delete {Path(path).name}")
        originals["unlink"](path, **options)

    for call in (fsync, replace, unlink):
        monkeypatch.setattr(os, call.__name__, call)
    save_checkpoint(saved, checkpoint_of(3))
    assert calls == [
        *("sync file", "rename .safetensors", "sync folder"),
        *("sync file", "rename .json", "sync folder"),
        *("delete step-00000001.json", "sync folder", "delete step-00000001.safetensors"),
    ]


def test_an_interrupt_in_the_middle_of_a_save_leaves_what_was_there(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, count = os.fsync, 0

    def interrupted(descriptor: int) -> None:
        nonlocal count
        count += 1
        if count == 3:
            raise KeyboardInterrupt
        original(descriptor)

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(saved, checkpoint_of(3))
    newest = latest_checkpoint(saved, warn=no_warning)
    assert newest is not None
    assert newest.step == 2


# ---- the real thing


def test_a_parent_that_is_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match=r"a part of this path is a file\. Choose another folder with --out"):
        save_checkpoint(tmp_path / "file" / "checkpoints", checkpoint_of(1))
    with pytest.raises(CheckpointError, match="this path is a file"):
        save_checkpoint(tmp_path / "file", checkpoint_of(1))


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the superuser may write into read-only folders")
def test_a_folder_without_permission_is_one_sentence(saved: Path) -> None:
    saved.chmod(0o555)
    try:
        with pytest.raises(CheckpointError, match="the folder may not be written to"):
            save_checkpoint(saved, checkpoint_of(3))
        assert is_whole(latest_checkpoint(saved, warn=no_warning))
    finally:
        saved.chmod(0o755)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte, where we may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    options = ["-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if mount is None or subprocess.run([mount, *options], capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system needs the superuser")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_is_one_sentence_and_the_old_checkpoint_stays(small_disk: Path) -> None:
    save_checkpoint(small_disk, checkpoint_of(1, size=100_000))
    with pytest.raises(
        CheckpointError, match=r"step 2 could not be saved in .*: the disk is full\. Free 0\.8 MB or more"
    ):
        save_checkpoint(small_disk, checkpoint_of(2, size=200_000))
    assert names(small_disk) == files_of(1)
    assert is_whole(latest_checkpoint(small_disk, warn=no_warning))
    save_checkpoint(small_disk, checkpoint_of(3, size=100_000))
    assert names(small_disk) == files_of(1, 3)


def test_a_disk_that_fills_up_at_the_manifest_keeps_the_old_checkpoint_and_gives_the_room_back(
    small_disk: Path,
) -> None:
    save_checkpoint(small_disk, checkpoint_of(1))
    free = shutil.disk_usage(small_disk).free
    page = 4096
    tensors_of_almost_all = (free - page) // 4 - page // 4
    with pytest.raises(CheckpointError, match="the disk is full"):
        save_checkpoint(
            small_disk, Checkpoint(2, {"weight": torch.zeros(tensors_of_almost_all)}, {"text": "x" * 4 * page})
        )
    assert names(small_disk) == files_of(1)
    assert shutil.disk_usage(small_disk).free == free


def test_a_read_only_disk_is_one_sentence_and_can_still_be_read(small_disk: Path) -> None:
    save_checkpoint(small_disk, checkpoint_of(1))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(CheckpointError, match="the file system is read-only"):
        save_checkpoint(small_disk, checkpoint_of(2))
    assert is_whole(latest_checkpoint(small_disk, warn=no_warning))


LIMITED = """
import resource, signal, sys
from pathlib import Path
import torch
from arcwise.errors import CheckpointError
from arcwise.training.checkpoint import Checkpoint, latest_checkpoint, save_checkpoint

folder = Path(sys.argv[1])
save_checkpoint(folder, Checkpoint(1, {"weight": torch.zeros(10)}, {}))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    save_checkpoint(folder, Checkpoint(2, {"weight": torch.zeros(100_000)}, {}))
except CheckpointError as error:
    print(error)
assert latest_checkpoint(folder).step == 1
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit on file sizes")
def test_a_limit_on_file_sizes_is_one_sentence_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "the file would be larger than is allowed here. Raise the limit with ulimit -f" in done.stdout
    assert names(tmp_path) == files_of(1)


# A process that saves without end is killed at a random moment; the next one, of the same nursery, goes on in the same folder.
NURSERY = """
import os, random, signal, sys, time
from pathlib import Path
import torch
from arcwise.training.checkpoint import Checkpoint, latest_checkpoint, save_checkpoint

torch.set_num_threads(1)
folder, kills, pick = Path(sys.argv[1]), int(sys.argv[2]), random.Random(0)

def newest():
    found = latest_checkpoint(folder, warn=lambda text: sys.exit("damaged: " + text))
    if found is None:
        return 0
    whole = bool((found.tensors["weight"] == found.state["value"]).all())
    return found.step if whole else sys.exit(f"step {found.step} is not whole")

def save_without_end(pipe):
    step = newest()
    while True:
        step += pick.choice((0, 1, 1, 2))
        value = float(pick.randrange(2**20))
        save_checkpoint(folder, Checkpoint(step, {"weight": torch.full((50_000,), value)}, {"value": value}))
        os.write(pipe, step.to_bytes(8, "big"))

for kill in range(kills):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        pick.seed(kill)
        os.close(reader)
        save_without_end(writer)
    os.close(writer)
    said = os.read(reader, 8)
    time.sleep(pick.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(reader, 8):
        said = more
    os.close(reader)
    promised, found = int.from_bytes(said, "big"), newest()
    if found < promised:
        sys.exit(f"step {promised} was reported as saved, step {found} was found")
    print(found, flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_kill_at_any_moment_of_a_save_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NURSERY, str(tmp_path), str(KILLS)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    steps = [int(line) for line in done.stdout.split()]
    assert len(steps) == KILLS
    assert steps == sorted(steps)
    save_checkpoint(tmp_path, checkpoint_of(steps[-1] + 1))
    assert len(names(tmp_path)) == 4


def test_reading_does_not_unpickle(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, checkpoint_of(1))
    code = (
        "import pickle, sys\n"
        "def refuse(*_, **__): raise AssertionError('unpickled')\n"
        "from pathlib import Path\n"
        "from arcwise.training.checkpoint import latest_checkpoint\n"
        "pickle.load = pickle.loads = pickle.Unpickler = refuse\n"
        "assert latest_checkpoint(Path(sys.argv[1])).step == 1\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


def test_the_tensors_read_can_be_written_to(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, checkpoint_of(1))
    back = latest_checkpoint(tmp_path)
    assert back is not None
    weight: Tensor = back.tensors["weight"]
    weight += 1
    assert bool((weight == 2).all())
