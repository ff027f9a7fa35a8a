from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import arcwise
from arcwise.data import Dataset
from arcwise.errors import CheckpointError, ConfigError, DataError, RunError
from arcwise.progress import Reporter, Stage
from arcwise.training import Run, RunFolder
from arcwise.training.config import Config, read_config
from arcwise.training.session import announce_run

MakeConfig = Callable[..., Config]


class Listening(Reporter):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.stages: list[str] = []

    def say(self, text: str = "") -> None:
        self.said.append(text)

    def warn(self, text: str) -> None:
        self.said.append(text)

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Stage]:
        self.stages.append(title)
        yield Stage(title, total)


def weights(run: Run) -> dict[str, torch.Tensor]:
    return {**run.model.backbone.state_dict(), "centres": run.model.head.weight.detach()}


def same(first: Run, second: Run) -> bool:
    a, b = weights(first), weights(second)
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


@pytest.fixture(scope="module")
def digits_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One epoch of the whole digits in 3-D; read only."""
    pytest.importorskip("sklearn")
    torch.set_num_threads(1)
    return arcwise.train("digits", dim=3, epochs=1, out=tmp_path_factory.mktemp("session") / "run", command="typed")


def test_training_leaves_the_callers_random_numbers_and_threads_as_they_were(
    small_digits: Dataset, tmp_path: Path
) -> None:
    torch.manual_seed(5)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    numbers = np.random.get_state(legacy=False)["state"]["key"]
    arcwise.train(small_digits, dim=3, epochs=1, out=tmp_path / "run")
    arcwise.load_run(tmp_path / "run", data=small_digits)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert np.array_equal(np.random.get_state(legacy=False)["state"]["key"], numbers)
    assert torch.get_default_dtype() == torch.float32


def test_what_the_caller_drew_before_changes_nothing(small_digits: Dataset, tmp_path: Path) -> None:
    torch.manual_seed(1)
    first = arcwise.train(small_digits, dim=3, epochs=1, out=tmp_path / "a")
    torch.manual_seed(2)
    second = arcwise.train(small_digits, dim=3, epochs=1, out=tmp_path / "b", announce=False)
    other = arcwise.train(small_digits, dim=3, epochs=1, out=tmp_path / "c", seed=1)
    assert same(first, second)
    assert not same(first, other)


def test_a_loaded_run_gives_the_same_embeddings(digits_run: Run) -> None:
    loaded = arcwise.load_run(digits_run.path)
    images = arcwise.data.load("digits").test.images
    assert torch.equal(loaded.model.embed(images), digits_run.model.embed(images))
    final = RunFolder.open(digits_run.path).load_embeddings("final")
    torch.testing.assert_close(loaded.model.embed(images), final["embeddings"])
    assert loaded.config == digits_run.config
    assert loaded.evaluation is not None
    assert digits_run.evaluation is not None
    assert loaded.evaluation["accuracy"] == digits_run.evaluation["accuracy"]


def test_the_saved_config_trains_the_same_weights_again(digits_run: Run, tmp_path: Path) -> None:
    again = arcwise.train(config=digits_run.path / "config.toml", out=tmp_path / "run")
    assert same(again, digits_run)
    assert again.config == digits_run.config


def test_single_values_of_a_config_can_be_changed(digits_run: Run, tmp_path: Path) -> None:
    settings = {"train.momentum": "0.5", "train.snapshot_images": "0"}
    changed = arcwise.train(config=digits_run.config, settings=settings, epochs=2, out=tmp_path / "run")
    assert (changed.config.train.momentum, changed.config.train.epochs) == (0.5, 2)
    assert not same(changed, digits_run)


def test_resuming_a_finished_run_changes_nothing(digits_run: Run) -> None:
    before = {p: p.read_bytes() for p in digits_run.path.rglob("*") if p.is_file()}
    again = arcwise.train(digits_run.path, resume=True)
    assert same(again, digits_run)
    assert {p: p.read_bytes() for p in digits_run.path.rglob("*") if p.is_file()} == before


def test_a_run_whose_measuring_was_cut_off_is_measured_when_resumed(small_digits: Dataset, tmp_path: Path) -> None:
    run = arcwise.train(small_digits, dim=3, epochs=1, out=tmp_path / "run")
    (run.path / "evaluation.json").unlink()
    again = arcwise.train(small_digits, out=run.path, resume=True)
    assert again.evaluation is not None
    assert run.evaluation is not None
    assert again.evaluation["accuracy"] == run.evaluation["accuracy"]


@pytest.mark.parametrize(
    "options", [{"seed": 3}, {"loss": "softmax"}, {"epochs": 4}, {"backbone": "small"}, {"margin": 0.1}]
)
def test_resuming_with_other_settings_is_refused(options: dict[str, object], digits_run: Run) -> None:
    before = {p: p.read_bytes() for p in digits_run.path.rglob("*") if p.is_file()}
    with pytest.raises(ConfigError, match="this run was begun with"):
        arcwise.train(digits_run.path, resume=True, **options)  # type: ignore[arg-type]
    assert {p: p.read_bytes() for p in digits_run.path.rglob("*") if p.is_file()} == before


def test_resuming_on_other_data_is_refused(digits_run: Run) -> None:
    with pytest.raises(ConfigError, match="this run was begun with data digits and goes on so; got mnist"):
        arcwise.train("mnist", out=digits_run.path, resume=True)


@pytest.mark.parametrize(
    "options", [{"loss": "arcface"}, {"seed": 0}, {"dim": 3}, {"lr": 0.1}, {"scale": 9.0}, {"backbone": "vgg8"}]
)
def test_what_a_config_settles_is_not_asked_for_again(
    options: dict[str, object], digits_run: Run, tmp_path: Path
) -> None:
    (name,) = options
    with pytest.raises(ConfigError, match=f"the config settles {name}; got .* Change single values .* --set"):
        arcwise.train(config=digits_run.config, out=tmp_path / "run", **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backbone": "vgg9"}, "Did you mean vgg8"),
        ({"backbone": "mlp"}, "mlp takes rows of features"),
        ({"loss": "arcfase"}, "Did you mean arcface"),
        ({"margin": 28.6}, "If that is in degrees"),
        ({"device": "gpu"}, "there is no device 'gpu'"),
        ({"settings": {"train.lrr": "1"}}, "Did you mean train.lr"),
        ({"settings": {"data.augment": "afine"}}, "Did you mean affine"),
        ({"settings": {"data.name": "mnist"}}, "would come too late; got 'mnist'. Use DATA itself instead"),
        ({"settings": {"train.device": "cuda"}}, "Use --device instead"),
        ({"settings": {"data.image_size": "4"}}, "between 8 and 1024 pixels; got 4"),
        ({"epochs": 0}, "at least 1; got 0"),
        ({"backbone": nn.Linear(3, 3)}, "does not accept input"),
        ({"backbone": nn.Sequential(nn.Flatten(), nn.Linear(64, 5)), "dim": 3}, "it returned \\(2, 5\\). Pass dim="),
    ],
)
def test_bad_wishes_are_named_before_any_folder_is_made(
    options: dict[str, object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=message):
        arcwise.train("digits", **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_device_that_a_config_names_and_is_not_here_is_said(digits_run: Run, tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(ConfigError, match="torch sees no NVIDIA GPU here"):
        arcwise.train(config=digits_run.config, settings={"train.device": "cuda"}, out=tmp_path / "run")


def test_nothing_to_train_on_and_nothing_to_resume_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="nothing to train on"):
        arcwise.train()
    with pytest.raises(ConfigError, match="nothing to resume"):
        arcwise.train(resume=True)
    with pytest.raises(RunError, match="is not a run folder: it does not exist"):
        arcwise.train("digits", resume=True)
    with pytest.raises(RunError, match="is not a run folder: it does not exist"):
        arcwise.load_run("none")
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_a_checkpoint_cannot_be_loaded_and_begins_anew_when_resumed(
    folder: RunFolder, small_digits: Dataset
) -> None:
    with pytest.raises(RunError, match=r"has no checkpoint yet\. Train it on with --resume"):
        arcwise.load_run(folder.path, data=small_digits)
    folder.append_metrics([{"kind": "health", "step": 0}, {"kind": "step", "step": 1}])
    run = arcwise.train(small_digits, out=folder.path, resume=True)
    assert run.evaluation is not None
    assert [line["step"] for line in folder.metrics() if line["kind"] == "step"] == list(range(1, 15))


def test_a_run_whose_every_checkpoint_is_damaged_is_one_sentence(small_digits: Dataset, tmp_path: Path) -> None:
    run = arcwise.train(small_digits, dim=3, epochs=1, out=tmp_path / "run")
    (run.path / "evaluation.json").unlink()
    for path in (run.path / "checkpoints").glob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r"no checkpoint in .* can be used: .*bytes instead of"):
        arcwise.train(small_digits, out=run.path, resume=True)


def test_a_network_of_ones_own_is_trained_measured_and_loaded(small_digits: Dataset, tmp_path: Path) -> None:
    def own() -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4))

    module = own()
    run = arcwise.train(small_digits, backbone=module, dim=4, epochs=10, out=tmp_path / "run")
    assert run.model.backbone is module
    assert run.config.backbone.name == "custom:Sequential"
    assert run.evaluation is not None
    assert run.evaluation["accuracy"] > 0.4
    with pytest.raises(RunError, match=r"network of the user's own \(Sequential\); pass it again from Python"):
        arcwise.load_run(run.path)
    loaded = arcwise.load_run(run.path, backbone=own(), data=small_digits)
    assert torch.equal(loaded.model.embed(small_digits.test.images), run.model.embed(small_digits.test.images))


def test_settings_of_the_data_are_heeded_the_first_time_and_again(tmp_path: Path) -> None:
    settings = {"data.image_size": "12", "data.test_share": "0.5", "train.snapshot_images": "10"}
    run = arcwise.train("digits", dim=3, epochs=1, settings=settings, out=tmp_path / "run")
    assert run.evaluation is not None
    assert run.evaluation["shape"] == [1, 12, 12]
    assert abs(run.evaluation["num_test"] - run.evaluation["num_train"]) <= 10
    again = arcwise.train(config=run.path / "config.toml", out=tmp_path / "again")
    assert same(run, again)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder of pictures by class: stripes that lie down, and stripes that stand."""
    generator = np.random.default_rng(0)
    for name in ("lying", "standing"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(12):
            pixels = generator.integers(0, 60, (16, 16, 3), dtype=np.uint8)
            pixels[::2] += 150
            picture = Image.fromarray(pixels)
            turned = picture.transpose(Image.Transpose.ROTATE_90) if name == "standing" else picture
            turned.save(tmp_path / "photos" / name / f"{number}.png")
    return tmp_path / "photos"


def test_a_folder_of_pictures_is_trained_on_and_found_again(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (photos / "lying" / "broken.png").write_bytes(b"not a picture")
    monkeypatch.chdir(tmp_path)
    listening = Listening()
    run = arcwise.train("photos", dim=3, epochs=2, batch_size=6, reporter=listening)
    assert run.path == Path("runs/photos-arcface")
    assert any("broken.png" in text for text in listening.said)
    assert run.config.data.name == str(photos)
    assert run.evaluation is not None
    assert run.evaluation["classes"] == ["lying", "standing"]
    monkeypatch.chdir(photos)
    again = arcwise.train(config=tmp_path / "runs" / "photos-arcface" / "config.toml", out=tmp_path / "again")
    assert same(run, again)


def test_a_list_of_files_is_trained_on(photos: Path, tmp_path: Path) -> None:
    rows = [f"{path},{path.parent.name}" for path in sorted(photos.rglob("*.png"))]
    (tmp_path / "list.csv").write_text("\n".join(["path,label", *rows]))
    run = arcwise.train(tmp_path / "list.csv", dim=3, epochs=1, batch_size=6, out=tmp_path / "run")
    assert run.evaluation is not None
    assert run.evaluation["classes"] == ["lying", "standing"]


def test_features_are_trained_on_with_a_network_for_features(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    labels = np.arange(90) % 3
    features = (np.eye(6)[labels] * 4 + generator.normal(size=(90, 6))).astype(np.float32)
    np.savez(tmp_path / "features.npz", features=features, labels=labels)
    run = arcwise.train(tmp_path / "features.npz", dim=3, epochs=10, out=tmp_path / "run")
    assert run.config.backbone.name == "mlp"
    assert run.evaluation is not None
    assert run.evaluation["accuracy"] > 0.8
    assert arcwise.load_run(run.path).model.embed(torch.from_numpy(features)).shape == (90, 3)


def test_data_that_is_not_there_is_said(tmp_path: Path) -> None:
    for data, message in (("./none", "no file or folder"), ("digist", "Did you mean digits")):
        with pytest.raises((DataError, ConfigError), match=message):
            arcwise.train(data, out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_the_announcement_says_what_where_and_how_long(small_digits: Dataset, make_config: MakeConfig) -> None:
    listening = Listening()
    announce_run(make_config(), small_digits, listening)
    announce_run(make_config(epochs=1), small_digits, listening, runs=4)
    assert listening.said[0].startswith("2 epochs of vgg8 in 3 dimensions on 240 samples of digits, on ")
    assert listening.said[1].startswith("4 runs, each 1 epoch of vgg8")
    assert all(said.endswith(" of training") for said in listening.said)
    assert len(listening.stages) == 2


def test_progress_is_told_stage_by_stage(small_digits: Dataset, tmp_path: Path) -> None:
    listening = Listening()
    arcwise.train(small_digits, dim=3, epochs=1, out=tmp_path / "run", reporter=listening)
    begun = [listening.stages.index(title) for title in ("training arcface on digits", "measuring arcface")]
    assert begun == sorted(begun)
    assert listening.said[-1].endswith("of training")


def test_the_run_folder_holds_what_its_readers_expect(digits_run: Run) -> None:
    config = read_config(digits_run.path / "config.toml")
    assert config.command == "typed"
    assert json.loads((digits_run.path / "evaluation.json").read_text())["data"] == "digits"
    names = {str(path.relative_to(digits_run.path)) for path in digits_run.path.rglob("*")}
    assert {"metrics.jsonl", "embeddings/final.safetensors", "embeddings/epoch-0000.safetensors", "figures"} <= names
