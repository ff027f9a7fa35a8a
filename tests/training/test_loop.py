"""Training, stopped and resumed anywhere, against training that never stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from arcwise import losses
from arcwise.backbones import build
from arcwise.data import Dataset, Split
from arcwise.errors import CheckpointError, TrainingError
from arcwise.progress import Reporter, Stage
from arcwise.training import RunFolder
from arcwise.training.build import build_model
from arcwise.training.config import Config, LossConfig
from arcwise.training.interrupt import StopRequest
from arcwise.training.loop import Trainer

MakeConfig = Callable[..., Config]
TIMINGS = ("seconds", "images_per_second")


class StopAt(Reporter):
    """Asks for a stop once so many steps are done, and keeps the warnings."""

    def __init__(self, step: int) -> None:
        self.stop = StopRequest()
        self.warnings: list[str] = []
        self._step = step

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Stage]:
        reporter = self

        class Watched(Stage):
            def update(self, text: str = "", *, done: int | None = None, total: int | None = None) -> None:
                super().update(text, done=done, total=total)
                reporter.stop.requested = self.done >= reporter._step

        yield Watched(title, total)


@dataclass(frozen=True)
class Setting:
    """What is trained: settings of the config, and perhaps a network of one's own."""

    name: str
    config: dict[str, Any]
    backbone: Callable[[], nn.Module] | None = None


def with_dropout() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(4 * 36, 3)
    )


SETTINGS = [
    Setting("bf16", {"precision": "bf16", "channels_last": True, "augment": "crop-flip"}),
    Setting("fp32-dropout", {"precision": "fp32", "channels_last": False, "augment": "affine"}, with_dropout),
    Setting(
        "adamw-warmup",
        {
            "optimiser": "adamw",
            "lr": 0.01,
            "clip_norm": 1.0,
            "loss": LossConfig("cosface", 10.0, 1.5, {"m": 0.2}),
            "augment": "crop-flip-cutout",
        },
    ),
    Setting("softmax", {"loss": LossConfig("softmax"), "dim": 5}),
    Setting(
        "terms",
        {
            "loss": LossConfig(
                "arcface", 10.0, 1.0, {"m": 0.3}, terms={name: {"weight": 0.1} for name in losses.names()}
            ),
            "augment": "affine",
        },
    ),
    Setting(
        "softmax-center", {"loss": LossConfig("softmax", terms={"center": {"weight": 0.003}}), "precision": "bf16"}
    ),
]


def trainer(
    path: Path, config: Config, data: Dataset, setting: Setting | None = None, reporter: Reporter | None = None
) -> Trainer:
    """A trainer as a new process would make it."""
    torch.seed()  # a process starts with random numbers of its own
    folder = RunFolder.open(path) if path.exists() else RunFolder.create(path, config)
    backbone = setting.backbone() if setting is not None and setting.backbone is not None else None
    return Trainer(folder, config, data, build_model(config, data, backbone), reporter or Reporter())


def train_stopping(path: Path, config: Config, data: Dataset, setting: Setting, stops: Sequence[int]) -> None:
    """Train to the end, in as many parts as there are stops and one."""
    for number, stop_at in enumerate([*stops, 10**9]):
        watch = StopAt(stop_at)
        part = trainer(path, config, data, setting, watch)
        assert part.restore() == (number > 0)
        assert part.run(watch.stop) == (stop_at > part.total_steps)
        assert part.step == min(stop_at, part.total_steps)


def fingerprint(path: Path) -> str:
    """SHA-256 of every tensor in a file and of its metadata, whose order safetensors leaves open."""
    with safe_open(path, "pt") as file:
        parts = sorted((file.metadata() or {}).items())
        tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
    digest = hashlib.sha256(repr([(name, t.dtype, t.shape) for name, t in tensors.items()] + parts).encode())
    for tensor in tensors.values():
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")
    return digest.hexdigest()


def written(path: Path) -> dict[str, Any]:
    """Everything in a run folder that does not tell the time: SHA-256 of the last state and of every snapshot, and the metrics."""
    state = sorted((path / "checkpoints").glob("*.safetensors"))[-1]
    files = [state, *sorted((path / "embeddings").iterdir())]
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    return {
        **{file.name: fingerprint(file) for file in files},
        "metrics": [{key: value for key, value in line.items() if key not in TIMINGS} for line in lines],
    }


@pytest.fixture(scope="module")
def never_stopped(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[Setting, Config, Dataset], dict[str, Any]]:
    """What is written by training without a stop, once for each setting."""
    known: dict[str, dict[str, Any]] = {}

    def find(setting: Setting, config: Config, data: Dataset) -> dict[str, Any]:
        if setting.name not in known:
            path = tmp_path_factory.mktemp(setting.name) / "run"
            train_stopping(path, config, data, setting, [])
            known[setting.name] = written(path)
        return known[setting.name]

    return find


@pytest.mark.parametrize("stops", [[1], [3], [7], [13], [2, 5, 6, 8, 12]], ids=str)
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_stopping_anywhere_and_resuming_changes_nothing(
    setting: Setting,
    stops: list[int],
    tmp_path: Path,
    small_digits: Dataset,
    make_config: MakeConfig,
    never_stopped: Callable[[Setting, Config, Dataset], dict[str, Any]],
) -> None:
    config = make_config(**setting.config)
    train_stopping(tmp_path / "run", config, small_digits, setting, stops)
    assert written(tmp_path / "run") == never_stopped(setting, config, small_digits)


def test_the_comparison_above_sees_a_change_of_one_setting(
    tmp_path: Path,
    small_digits: Dataset,
    make_config: MakeConfig,
    never_stopped: Callable[[Setting, Config, Dataset], dict[str, Any]],
) -> None:
    setting = SETTINGS[1]
    expected = never_stopped(setting, make_config(**setting.config), small_digits)
    train_stopping(tmp_path / "run", make_config(**setting.config, seed=1), small_digits, setting, [])
    found = written(tmp_path / "run")
    assert found.keys() == expected.keys()
    assert all(found[name] != expected[name] for name in found)


def test_a_run_that_lost_what_followed_its_checkpoint_takes_those_steps_again(
    tmp_path: Path,
    small_digits: Dataset,
    make_config: MakeConfig,
    never_stopped: Callable[[Setting, Config, Dataset], dict[str, Any]],
) -> None:
    """As a kill leaves it: lines and snapshots beyond the checkpoint, and half a line at the end."""
    setting = SETTINGS[0]
    config = make_config(**setting.config)
    watch = StopAt(4)
    begun = trainer(tmp_path / "run", config, small_digits, setting, watch)
    begun.run(watch.stop)
    for _ in range(5):
        begun.take_step()
    with begun.folder.metrics_file.open("a") as file:
        file.write('{"kind": "step", "st')
    again = trainer(tmp_path / "run", config, small_digits, setting)
    assert again.restore()
    assert again.step == 4
    assert again.run(StopRequest())
    assert written(tmp_path / "run") == never_stopped(setting, config, small_digits)


def test_a_damaged_checkpoint_is_said_and_the_one_before_it_is_used(
    tmp_path: Path,
    small_digits: Dataset,
    make_config: MakeConfig,
    never_stopped: Callable[[Setting, Config, Dataset], dict[str, Any]],
) -> None:
    setting = SETTINGS[0]
    config = make_config(**setting.config)
    path = tmp_path / "run"
    for stop_at in (3, 9):
        watch = StopAt(stop_at)
        part = trainer(path, config, small_digits, setting, watch)
        part.restore()
        part.run(watch.stop)
    newest = path / "checkpoints" / "step-00000009.safetensors"
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    watch = StopAt(10**9)
    again = trainer(path, config, small_digits, setting, watch)
    assert again.restore()
    assert again.step == 3
    assert "step-00000009.safetensors has changed since it was written" in watch.warnings[0]
    assert again.run(watch.stop)
    assert written(path) == never_stopped(setting, config, small_digits)


def test_a_checkpoint_of_another_model_is_refused(
    tmp_path: Path, small_digits: Dataset, make_config: MakeConfig
) -> None:
    trainer(tmp_path / "run", make_config(), small_digits).save()
    with pytest.raises(CheckpointError, match="belongs to another model than the config describes"):
        trainer(tmp_path / "run", make_config(dim=4), small_digits).restore()


def test_metrics_tell_every_step_and_epoch(tmp_path: Path, small_digits: Dataset, make_config: MakeConfig) -> None:
    run = trainer(tmp_path / "run", make_config(), small_digits)
    run.run(StopRequest())
    lines = list(run.folder.metrics())
    steps = [line for line in lines if line["kind"] == "step"]
    epochs = [line for line in lines if line["kind"] == "epoch"]
    assert [line["step"] for line in steps] == list(range(1, 15))
    assert [(line["epoch"], line["step"]) for line in epochs] == [(1, 7), (2, 14)]
    for line in steps:
        assert line["lr"] > 0
        assert line["images_per_second"] > 0
        assert line["scale"] == 10.0
        assert line["margin_fraction"] == 1.0
    for number, line in enumerate(epochs):
        own = steps[7 * number : 7 * (number + 1)]
        for key in ("loss", "accuracy", "target_angle"):
            assert line[key] == pytest.approx(sum(step[key] for step in own) / 7)
        assert 0 <= line["test_accuracy"] <= 1
        assert 0 < line["test_angle"] < 180
    assert epochs[1]["seconds"] > epochs[0]["seconds"] > 0


def test_every_term_is_told_under_its_own_name(tmp_path: Path, small_digits: Dataset, make_config: MakeConfig) -> None:
    weights = {name: 0.1 * (k + 1) for k, name in enumerate(losses.names())}
    loss = LossConfig("arcface", 10.0, margin={"m": 0.3}, terms={name: {"weight": w} for name, w in weights.items()})
    run = trainer(tmp_path / "run", make_config(loss=loss), small_digits)
    run.run(StopRequest())
    told = [line for line in run.folder.metrics() if line["kind"] in ("step", "epoch")]
    assert len(told) == 16
    for line in told:
        parts = line["head_loss"] + sum(weight * line[name] for name, weight in weights.items())
        assert line["loss"] == pytest.approx(parts, rel=1e-5)
    plain = trainer(tmp_path / "plain", make_config(), small_digits)
    plain.run(StopRequest())
    first = next(line for line in plain.folder.metrics() if line["kind"] == "step")
    assert told[0].keys() - first.keys() == {"head_loss", *losses.names()}
    assert told[0]["head_loss"] == pytest.approx(first["loss"])


def test_what_a_term_learns_is_trained_clipped_not_decayed_and_saved(
    tmp_path: Path, small_digits: Dataset, make_config: MakeConfig
) -> None:
    loss = LossConfig("arcface", 10.0, margin={"m": 0.3}, terms={"proxy-anchor": {}, "center": {}})
    config = make_config(loss=loss, weight_decay=0.5, epochs=1)
    run = trainer(tmp_path / "run", config, small_digits)
    terms = run.model.objective.terms
    before = {name: value.clone() for name, value in terms.state_dict().items()}
    assert before.keys() == {"proxy-anchor.proxies", "center.centers"}
    decay = {id(p): group["weight_decay"] for group in run.optimiser.param_groups for p in group["params"]}
    assert [decay[id(p)] for p in terms.parameters()] == [0.0]
    run.take_step()
    gradients = [
        p.grad for p in [*run.model.backbone.parameters(), *run.model.objective.parameters()] if p.grad is not None
    ]
    assert any(gradient is p.grad for p in terms.parameters() for gradient in gradients)
    assert float(torch.cat([g.flatten() for g in gradients]).norm()) == pytest.approx(1.0, rel=1e-3)
    run.run(StopRequest())
    after = terms.state_dict()
    assert all(not torch.equal(after[name], value) for name, value in before.items())
    again = trainer(tmp_path / "run", config, small_digits)
    assert again.restore()
    for name, value in again.model.objective.terms.state_dict().items():
        assert torch.equal(value, after[name])


def test_a_checkpoint_without_a_term_does_not_pass_for_one_with_it(
    tmp_path: Path, small_digits: Dataset, make_config: MakeConfig
) -> None:
    trainer(tmp_path / "run", make_config(), small_digits).save()
    loss = LossConfig("arcface", 10.0, margin={"m": 0.3}, terms={"center": {}})
    with pytest.raises(CheckpointError, match="belongs to another model than the config describes"):
        trainer(tmp_path / "run", make_config(loss=loss), small_digits).restore()


def test_a_term_that_is_not_finite_stops_training_and_is_named(
    tmp_path: Path, small_digits: Dataset, make_config: MakeConfig
) -> None:
    loss = LossConfig("arcface", 10.0, margin={"m": 0.3}, terms={"proxy-anchor": {}})
    run = trainer(tmp_path / "run", make_config(loss=loss), small_digits)
    with torch.no_grad():
        next(iter(run.model.objective.terms.parameters()))[0, 0] = torch.nan
    with pytest.raises(TrainingError, match=r"terms\.proxy-anchor\.proxies.*The last checkpoint is intact"):
        run.run(StopRequest())


def test_the_same_head_is_drawn_whatever_stands_beside_it(small_digits: Dataset, make_config: MakeConfig) -> None:
    terms = {"proxy-anchor": {"weight": 0.1}}
    plain, beside = (
        build_model(make_config(loss=LossConfig("arcface", 10.0, margin={"m": 0.3}, terms=t)), small_digits)
        for t in ({}, terms)
    )
    assert torch.equal(plain.head.weight, beside.head.weight)


def test_what_the_test_part_reaches_is_what_the_model_reaches(
    tmp_path: Path, small_digits: Dataset, make_config: MakeConfig
) -> None:
    run = trainer(tmp_path / "run", make_config(epochs=3), small_digits)
    run.run(StopRequest())
    told = [line for line in run.folder.metrics() if line["kind"] == "epoch"][-1]
    embeddings = run.model.embed(small_digits.test.images)
    cosines = nn.functional.normalize(embeddings) @ nn.functional.normalize(run.model.head.weight.detach()).T
    labels = small_digits.test.labels
    assert told["test_accuracy"] == pytest.approx((cosines.argmax(1) == labels).double().mean().item())
    own = cosines.gather(1, labels[:, None]).clamp(-1, 1).acos().rad2deg().mean().item()
    assert told["test_angle"] == pytest.approx(own, abs=0.01)


def test_snapshots_show_the_same_pictures_at_the_moments_they_are_named_for(
    tmp_path: Path, small_digits: Dataset, make_config: MakeConfig
) -> None:
    config = make_config(snapshot_images=30)
    run = trainer(tmp_path / "run", config, small_digits)
    start = run.model.embed(run.shown_images)
    run.run(StopRequest())
    names = sorted(path.stem for path in run.folder.embeddings.iterdir())
    assert names == ["epoch-0000", "epoch-0000.10", "epoch-0000.25", "epoch-0000.50", "epoch-0001", "epoch-0002"]
    loaded = {name: run.folder.load_embeddings(name) for name in names}
    torch.testing.assert_close(loaded["epoch-0000"]["embeddings"], start)
    torch.testing.assert_close(loaded["epoch-0002"]["embeddings"], run.model.embed(run.shown_images))
    for snapshot in loaded.values():
        assert torch.equal(snapshot["labels"], run.shown_labels)
        assert snapshot["embeddings"].shape == (30, 3)
        assert snapshot["centres"].shape == (10, 3)
    assert torch.equal(run.shown_labels.bincount(), torch.full((10,), 3))


def test_epochs_of_few_steps_still_begin_with_the_picture_before_training(
    tmp_path: Path, small_digits: Dataset, make_config: MakeConfig
) -> None:
    run = trainer(tmp_path / "run", make_config(batch_size=240, epochs=3), small_digits)
    run.run(StopRequest())
    names = sorted(path.stem for path in run.folder.embeddings.iterdir())
    assert names == ["epoch-0000", "epoch-0001", "epoch-0002", "epoch-0003"]


def test_no_snapshot_is_taken_where_none_is_wanted(
    tmp_path: Path, small_digits: Dataset, make_config: MakeConfig
) -> None:
    run = trainer(tmp_path / "run", make_config(snapshot_images=0, epochs=1), small_digits)
    run.run(StopRequest())
    assert list(run.folder.embeddings.iterdir()) == []


def test_a_scale_that_is_too_small_is_said_once_and_written_down(
    tmp_path: Path, small_digits: Dataset, make_config: MakeConfig
) -> None:
    config = make_config(loss=LossConfig("arcface", 0.5, margin={"m": 0.3}))
    for stop_at in (1, 5, 10**9):
        watch = StopAt(stop_at)
        run = trainer(tmp_path / "run", config, small_digits, reporter=watch)
        run.restore()
        run.run(watch.stop)
    told = [line for line in run.folder.metrics() if line["kind"] == "health"]
    assert [(line["name"], line["step"]) for line in told] == [("scale-too-small", 0)]
    assert "the scale of 0.5 is too small for 10 classes in 3 dimensions" in told[0]["message"]


def test_a_small_scale_is_no_trouble_where_other_classes_are_judged(
    tmp_path: Path, small_digits: Dataset, make_config: MakeConfig
) -> None:
    config = make_config(loss=LossConfig("arcface", 0.5, margin={"m": 0.3}), epochs=1)
    strangers = replace(small_digits, test_classes=tuple(f"stranger {n}" for n in range(10)))
    run = trainer(tmp_path / "run", config, strangers)
    run.run(StopRequest())
    assert "scale-too-small" not in [line.get("name") for line in run.folder.metrics()]


class NanAfter(nn.Module):
    """A network whose third layer begins to give NaN after so many batches."""

    def __init__(self, batches: int) -> None:
        super().__init__()
        self.flatten, self.wide, self.narrow = nn.Flatten(), nn.Linear(64, 8), nn.Linear(8, 3)
        self.batches = batches

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.batches -= 1
        if self.batches < 0:
            with torch.no_grad():
                self.narrow.weight[0, 0] = torch.nan
        out: Tensor = self.narrow(self.wide(self.flatten(x)))
        return out


def test_nan_stops_training_names_where_it_began_and_leaves_the_checkpoint(
    tmp_path: Path, small_digits: Dataset, make_config: MakeConfig
) -> None:
    config = make_config(checkpoint_seconds=0.0)
    folder = RunFolder.create(tmp_path / "run", config)
    run = Trainer(folder, config, small_digits, build_model(config, small_digits, NanAfter(4)), Reporter())
    with pytest.raises(TrainingError, match=r"narrow.*The last checkpoint is intact") as raised:
        run.run(StopRequest())
    assert run.step == 4
    told = [line for line in folder.metrics() if line["kind"] == "health"]
    assert [(line["name"], line["step"]) for line in told] == [("non-finite", 5)]
    assert str(raised.value).startswith(told[0]["message"])
    kept = load_file(folder.checkpoints / "step-00000004.safetensors")
    assert all(tensor.isfinite().all() for tensor in kept.values() if tensor.is_floating_point())


def test_labels_of_minus_one_are_left_out_of_everything_and_hurt_nothing(
    tmp_path: Path, small_digits: Dataset, make_config: MakeConfig
) -> None:
    unlabelled = replace(
        small_digits,
        train=Split(small_digits.train.images, torch.where(torch.arange(240) < 60, -1, small_digits.train.labels)),
    )
    run = trainer(tmp_path / "run", make_config(), unlabelled)
    assert run.run(StopRequest())
    assert all(line["loss"] > 0 for line in run.folder.metrics())


def test_what_is_trained_gets_better(tmp_path: Path, small_digits: Dataset, make_config: MakeConfig) -> None:
    run = trainer(tmp_path / "run", make_config(epochs=8, dim=8), small_digits)
    before = run.judge(small_digits.test.images, small_digits.test.labels)
    run.run(StopRequest())
    after = run.judge(small_digits.test.images, small_digits.test.labels)
    assert after["test_accuracy"] > max(0.6, before["test_accuracy"] + 0.2)
    assert after["test_angle"] < before["test_angle"]


def test_the_same_network_is_drawn_under_every_loss(small_digits: Dataset, make_config: MakeConfig) -> None:
    losses = [LossConfig("softmax"), LossConfig("arcface", 10.0, margin={"m": 0.3}), LossConfig("cosface", 20.0)]
    states = [build_model(make_config(loss=loss), small_digits).backbone.state_dict() for loss in losses]
    for state in states[1:]:
        assert all(torch.equal(state[key], value) for key, value in states[0].items())
    other = build("vgg8", shape=(1, 8, 8), dim=3).state_dict()
    assert any(not torch.equal(other[key], value) for key, value in states[0].items())
