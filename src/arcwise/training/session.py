"""Training as one call: from the name of a data set, or a folder, to a run folder with a measured model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from arcwise import data as data_room
from arcwise.data import Dataset
from arcwise.errors import ConfigError, RunError
from arcwise.margins import Margin
from arcwise.progress import Reporter
from arcwise.training.build import Model, build_model
from arcwise.training.config import (
    BackboneConfig,
    Config,
    DataConfig,
    LossConfig,
    TrainConfig,
    read_config,
    with_settings,
)
from arcwise.training.device import choose_device, describe
from arcwise.training.estimate import estimate_seconds, in_words
from arcwise.training.finish import Measure, measure
from arcwise.training.freed_memory import keep_freed_memory
from arcwise.training.interrupt import StopRequest, stop_on_signals
from arcwise.training.loop import Trainer
from arcwise.training.loss_spec import LossSpec, as_spec
from arcwise.training.recipes import Wishes, resolve, sized
from arcwise.training.resuming import folder_to_resume, same_run, same_setting, same_tuning
from arcwise.training.run_folder import RunFolder
from arcwise.training.training_data import training_data
from arcwise.training.tuned_settings import TunedSettings, read_tuned

RUNS = Path("runs")


@dataclass(frozen=True)
class Run:
    """A run folder and the model in it.

    Attributes:
        path: the folder.
        config: everything that was set.
        model: the trained backbone and head.
        evaluation: what was measured, as in evaluation.json; None while training is unfinished.
        stopped_by: the signal that stopped training early, or came while the model was being measured; or None.
    """

    path: Path
    config: Config
    model: Model
    evaluation: dict[str, Any] | None
    stopped_by: str | None = None


def train(
    data: str | Path | Dataset | None = None,
    *,
    loss: str | Margin | LossSpec | None = None,
    dim: int | None = None,
    backbone: str | nn.Module | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    lr: float | None = None,
    warmup_epochs: float | None = None,
    scale: float | None = None,
    margin: float | None = None,
    seed: int | None = None,
    device: str = "auto",
    settings: Mapping[str, str] | None = None,
    tuned: Path | str | TunedSettings | None = None,
    config: Path | str | Config | None = None,
    out: Path | str | None = None,
    resume: bool = False,
    data_dir: Path | None = None,
    fallback: str | None = None,
    command: str = "",
    announce: bool = True,
    reporter: Reporter | None = None,
) -> Run:
    """Train a model.

    Args:
        data: a known data set ("mnist"), a folder with one sub-folder per class, a CSV of path,label, an .npz of features with
            labels, a run folder (with `resume`), or a `Dataset`.
        loss: "softmax", or a margin, with parameters if need be: "arcface(m=0.3)", or arcwise.ArcFace(0.3); by default "arcface".
        dim: the width of the embeddings.
        backbone: a name, or a module of your own that maps prepared input (B, C, H, W) to (B, dim).
        warmup_epochs: over so many epochs the margin grows from 0 to its full strength.
        scale: s; by default chosen from the number of classes, `dim` and the margin.
        margin: the margin's m; angles in radians.
        seed: decides everything random; by default 0.
        settings: single values of the config by dotted name, {"train.weight_decay": "0"}.
        tuned: what `arcwise.tune` found: its tuned.toml, which settles the scale, the margin and, where `dim` is not given, the width.
        config: a config to run as it is; `data`, `device`, `epochs` and `settings` still apply on top, and the rest is refused.
        out: the run folder; by default runs/DATA-LOSS. It must not exist yet unless `resume` is set.
        resume: go on where an existing run stopped.
        data_dir: a folder to look for the data set in before anything is fetched.
        fallback: a data set to use where `data` cannot be fetched.
        announce: say first what is going to happen and how long it should take.
        reporter: who is told about progress; nobody by default.

    Returns:
        The run. `run.model.embed(images)` gives embeddings.
    """
    reporter = reporter if reporter is not None else Reporter()
    if isinstance(loss, Margin):
        usual = type(loss)().parameters()
        loss = LossSpec(loss.name, {key: value for key, value in loss.parameters().items() if value != usual[key]})
    spec = as_spec(loss) if loss is not None else None
    if not (backbone is None or isinstance(backbone, str | nn.Module)):
        raise ConfigError(
            f"backbone must be a name or an instance of torch.nn.Module; got {backbone!r}. A class wants ()."
        )
    own = read_tuned(Path(tuned)) if isinstance(tuned, str | Path) else tuned
    resumed = folder_to_resume(RUNS, data, spec, out) if resume else None
    custom = backbone if isinstance(backbone, nn.Module) else None
    if resumed is not None:
        folder = RunFolder.open(resumed)
        chosen = folder.config()
        _same_backbone(chosen, custom)
        if out is not None and data is not None and not isinstance(data, Dataset) and fallback is None:
            same_setting("data", _reference(data), chosen.data.name)
        same_run(
            chosen,
            spec,
            settings or {},
            dim=dim,
            backbone=backbone if isinstance(backbone, str) else None,
            epochs=epochs,
            batch_size=batch_size,
            lr=lr,
            warmup_epochs=warmup_epochs,
            scale=scale,
            margin=margin,
            seed=seed,
        )
        if own is not None:
            same_tuning(chosen, own, spec)
        dataset = data if isinstance(data, Dataset) else load_data(chosen, data_dir, reporter, fallback=fallback)
        device = device if device != "auto" else chosen.train.device
        chosen = replace(chosen, train=replace(chosen.train, device=str(choose_device(device))))
    else:
        wishes = Wishes(
            loss=spec if spec is not None else LossSpec("arcface"),
            dim=dim,
            backbone=backbone if isinstance(backbone, str) else None,
            epochs=epochs,
            batch_size=batch_size,
            lr=lr,
            warmup_epochs=warmup_epochs,
            scale=scale,
            margin=margin,
            seed=seed if seed is not None else 0,
            device=device,
            settings=settings or {},
            command=command,
            tuned=own,
        )
        if config is not None:
            _only_config(loss=loss, seed=seed, dim=dim, backbone=wishes.backbone, batch_size=batch_size, lr=lr)
            _only_config(warmup_epochs=warmup_epochs, scale=scale, margin=margin, tuned=tuned)
        chosen, dataset = _resolve(data, wishes, config, custom, data_dir, fallback, reporter)
        path = (
            Path(out)
            if out is not None
            else RUNS / f"{dataset.name}-{wishes.loss.label if config is None else chosen.loss.name}"
        )
        RunFolder.must_be_free(path)
    if announce:
        listed = folder.with_own_list(chosen) if resumed is not None else chosen
        for note in training_data(listed, dataset).notes:
            reporter.say(f"note: {note}")
        if resumed is None:
            announce_run(chosen, dataset, reporter, custom)
    if resumed is None:
        folder = RunFolder.create(path, chosen)
    return train_in(folder, chosen, dataset, custom, resumed=resumed is not None, reporter=reporter)


def announce_run(
    config: Config, data: Dataset, reporter: Reporter, backbone: nn.Module | None = None, runs: int = 1
) -> None:
    """Say in one sentence what is going to happen and how long it should take."""
    data = training_data(config, data)
    with reporter.stage("timing a few steps"):
        seconds = runs * estimate_seconds(config, data, backbone)
    epochs = f"{config.train.epochs} epoch{'s' if config.train.epochs > 1 else ''}"
    many = f"{runs} runs, each " if runs > 1 else ""
    reporter.say(
        f"{many}{epochs} of {config.backbone.name} in {config.backbone.dim} dimensions on"
        f" {len(data.train.labels):,} samples of {data.name}, on {describe(torch.device(config.train.device))}:"
        f" about {in_words(seconds)} of training"
    )


def load_run(
    path: Path | str,
    *,
    backbone: nn.Module | None = None,
    data: Dataset | None = None,
    data_dir: Path | None = None,
    reporter: Reporter | None = None,
) -> Run:
    """Open a run folder with the weights of its newest checkpoint.

    Args:
        path: the run folder.
        backbone: the network, where training was given one of the user's own.
        data: the data set, where training was given one that has no name or path to load it by.
        data_dir: a folder to look for the data set in before anything is fetched.
        reporter: who is told about progress; nobody by default.
    """
    reporter = reporter if reporter is not None else Reporter()
    folder = RunFolder.open(Path(path))
    config = folder.config()
    _same_backbone(config, backbone)
    dataset = data if data is not None else load_data(config, data_dir, reporter)
    dataset = training_data(folder.with_own_list(config), dataset)
    with _own_random_state(config.train.device):
        model = build_model(config, dataset, backbone)
        if not Trainer(folder, config, dataset, model, Reporter()).restore(rewind_metrics=False):
            raise RunError(f"{path} has no checkpoint yet. Train it on with --resume.")
    model.backbone.eval()
    return Run(folder.path, config, model, folder.evaluation())


def load_data(config: Config, data_dir: Path | None, reporter: Reporter, *, fallback: str | None = None) -> Dataset:
    """The data set that a config names."""
    return data_room.load(
        config.data.name,
        image_size=config.data.image_size or None,
        test_share=config.data.test_share,
        data_dir=data_dir,
        fallback=fallback,
        reporter=reporter,
    )


def train_in(
    folder: RunFolder,
    config: Config,
    data: Dataset,
    custom: nn.Module | None = None,
    *,
    resumed: bool = False,
    reporter: Reporter,
    stop: StopRequest | None = None,
    measuring: Measure = measure,
) -> Run:
    """Train what the config describes in a run folder that is there, and measure it.

    Args:
        data: as it was loaded; what the config makes of it is made here.
        stop: by whom a stop is asked for; by default Ctrl-C and SIGTERM do.
        measuring: what is measured at the end, and written into the folder.
    """
    data = training_data(folder.with_own_list(config), data)
    if config.train.device == "cpu":
        keep_freed_memory()
    listening = stop_on_signals() if stop is None else contextlib.nullcontext(stop)
    with _own_random_state(config.train.device), listening as stop:
        model = build_model(config, data, custom)
        trainer = Trainer(folder, config, data, model, reporter)
        if resumed and trainer.restore():
            reporter.say(f"resuming {folder.path} at step {trainer.step:,} of {trainer.total_steps:,}")
        evaluation = folder.evaluation()
        if trainer.step < trainer.total_steps or evaluation is None:
            finished = trainer.step == trainer.total_steps or trainer.run(stop)
            if not finished:
                return Run(folder.path, config, model, None, stop.signal_name)
            evaluation = measuring(folder, config, data, model, trainer.seconds, reporter)
    model.backbone.eval()
    model.head.eval()
    return Run(folder.path, config, model, evaluation, stop.signal_name)


def _resolve(
    data: str | Path | Dataset | None,
    wishes: Wishes,
    config: Path | str | Config | None,
    custom: nn.Module | None,
    data_dir: Path | None,
    fallback: str | None,
    reporter: Reporter,
) -> tuple[Config, Dataset]:
    if config is not None:
        chosen = config if isinstance(config, Config) else read_config(Path(config))
        if data is not None and not isinstance(data, Dataset):
            chosen = replace(chosen, data=replace(chosen.data, name=_reference(data)))
        chosen = with_settings(chosen, wishes.settings)
        device = choose_device(wishes.device if wishes.device != "auto" else chosen.train.device)
        epochs = wishes.epochs if wishes.epochs is not None else chosen.train.epochs
        chosen = replace(
            chosen,
            train=replace(chosen.train, device=str(device), epochs=epochs),
            command=wishes.command or chosen.command,
        )
        _same_backbone(chosen, custom)
        return chosen, data if isinstance(data, Dataset) else load_data(chosen, data_dir, reporter, fallback=fallback)
    if data is None:
        raise ConfigError("there is nothing to train on: name a data set, a folder or a file, or pass --config.")
    dataset, reference = load_any(data, data_dir, fallback, reporter, wishes.settings, device=wishes.device)
    name = f"custom:{type(custom).__name__}" if custom is not None else None
    resolved = resolve(dataset, wishes, reference=reference, custom_backbone=name)
    for reason in resolved.reasons:
        reporter.say(reason)
    return resolved.config, dataset


# What other choices follow from has an option that is heeded before they are made.
_OPTIONS = {"data.name": "DATA itself", "loss.name": "--loss", "backbone.dim": "--dim", "train.device": "--device"}
_UNSET = Config(DataConfig(""), BackboneConfig("", 2), LossConfig("softmax"), TrainConfig(1))


def load_any(
    data: str | Path | Dataset,
    data_dir: Path | None,
    fallback: str | None,
    reporter: Reporter,
    settings: Mapping[str, str] | None = None,
    *,
    device: str = "auto",
) -> tuple[Dataset, str]:
    """A data set, as the settings or else the recipe for this device want it, and the name or path by which it can be loaded again."""
    if not isinstance(data, str | Path | Dataset):
        raise ConfigError(
            f"data must be a name, a path or an arcwise Dataset; got {type(data).__name__}. Arrays go in as an .npz."
        )
    if not isinstance(data, Dataset) and any((Path(data) / f).is_file() for f in ("config.toml", "comparison.json")):
        raise ConfigError(f"{data} is a folder that arcwise wrote, not a data set. Add --resume to go on with a run.")
    settings = settings or {}
    for key, option in _OPTIONS.items():
        if key in settings:
            raise ConfigError(f"--set {key} would come too late; got {settings[key]!r}. Use {option} instead.")
    wanted = with_settings(_UNSET, settings).data
    if isinstance(data, Dataset):
        return data, data.name
    dataset = data_room.load(
        str(data),
        image_size=wanted.image_size or None,
        test_share=wanted.test_share,
        data_dir=data_dir,
        fallback=fallback,
        reporter=reporter,
    )
    reference = dataset.name if dataset.name in data_room.names() else _reference(data)
    return dataset if wanted.image_size else sized(dataset, choose_device(device)), reference


def _reference(data: str | Path) -> str:
    """A known set's name as it is; a path made absolute, so that the config works from anywhere."""
    return str(data) if str(data) in data_room.names() else str(Path(data).expanduser().resolve())


def _same_backbone(config: Config, custom: nn.Module | None) -> None:
    if config.backbone.name.startswith("custom:") and custom is None:
        raise RunError(
            f"this run was trained with a network of the user's own ({config.backbone.name[7:]});"
            " pass it again from Python: backbone=your_module."
        )


def _only_config(**given: object) -> None:
    """What a config settles is not asked for a second time."""
    for name, value in given.items():
        if value is not None:
            raise ConfigError(
                f"the config settles {name}; got {name} {value} as well."
                " Change single values of a config with --set, as in --set train.lr=0.05."
            )


@contextlib.contextmanager
def _own_random_state(device: str) -> Iterator[None]:
    """Leave the caller's random numbers as they were."""
    with torch.random.fork_rng(devices=[torch.device(device)] if device.startswith("cuda") else []):
        yield
