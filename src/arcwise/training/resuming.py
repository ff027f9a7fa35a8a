"""Which run is to be resumed, and that it is asked for as it was begun."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from arcwise import losses
from arcwise.data import Dataset
from arcwise.errors import ConfigError
from arcwise.training.config import Config, with_settings
from arcwise.training.loss_spec import LossSpec
from arcwise.training.term_table import TermTable
from arcwise.training.tuned_settings import TunedSettings


def folder_to_resume(
    runs: Path, data: str | Path | Dataset | None, loss: LossSpec | None, out: Path | str | None
) -> Path:
    """The run folder that is meant: the one that is named, or the one that the data set and the loss would have been trained into."""
    if out is not None:
        return Path(out)
    if data is None:
        raise ConfigError(
            "there is nothing to resume: name the run folder, as in arcwise train runs/mnist-arcface --resume."
        )
    if not isinstance(data, Dataset) and (Path(data) / "config.toml").is_file():
        return Path(data)
    name = data.name if isinstance(data, Dataset) else Path(data).stem
    return runs / f"{name}-{loss.label if loss is not None else 'arcface'}"


def same_run(config: Config, loss: LossSpec | None, settings: Mapping[str, str], **wanted: object) -> None:
    """Refuse whatever was asked for (None: nothing) that the run's config has otherwise."""
    begun = {
        "dim": config.backbone.dim,
        "backbone": config.backbone.name,
        "epochs": config.train.epochs,
        "batch_size": config.train.batch_size,
        "lr": config.train.lr,
        "warmup_epochs": config.loss.warmup_epochs,
        "scale": config.loss.scale,
        "margin": config.loss.margin.get("m"),
        "seed": config.train.seed,
    }
    if loss is not None:
        same_setting("loss", loss.name, config.loss.name)
        for parameter, given in loss.margin.items():
            same_setting(f"loss {parameter}", given, config.loss.margin.get(parameter))
        same_setting("centers", loss.centers_per_class, config.loss.centers_per_class)
        same_setting("filter", loss.filter_above, config.loss.filter_above)
        _same_terms(loss, config.loss.terms)
    for name, value in wanted.items():
        same_setting(name, value, begun[name])
    if with_settings(config, settings) != config:
        raise ConfigError(
            f"this run was begun with other settings than {dict(settings)}. Leave --set out, or start another run."
        )


def _same_terms(loss: LossSpec, begun: TermTable) -> None:
    """Refuse other terms, and another value of what was said about one; what was left open may have been chosen by tuning."""
    same_setting(
        "terms", "+".join(sorted(term.name for term in loss.terms)) or "none", "+".join(sorted(begun)) or "none"
    )
    for term in loss.terms:
        usual = losses.term_class(term.name).default_weight
        said = {**({"weight": term.weight} if term.weight != usual else {}), **term.parameters}
        for name, value in said.items():
            same_setting(f"{term.name} {name}", value, begun[term.name].get(name))


def same_tuning(config: Config, tuned: TunedSettings, loss: LossSpec | None) -> None:
    """Refuse tuned settings that the run's config has otherwise."""
    found = tuned.find(loss if loss is not None else LossSpec(config.loss.name))
    if found is not None:
        same_setting("scale", found.scale or None, config.loss.scale)
        for parameter, value in found.margin.items():
            same_setting(f"loss {parameter}", value, config.loss.margin.get(parameter))
        for term, table in found.terms.items():
            for parameter, value in table.items():
                same_setting(f"{term} {parameter}", value, config.loss.terms.get(term, {}).get(parameter))


def same_setting(name: str, wanted: object, begun: object) -> None:
    """A resumed run goes on as it began; asking for something else is refused rather than ignored."""
    if wanted is not None and wanted != begun:
        raise ConfigError(
            f"this run was begun with {name} {begun} and goes on so; got {wanted}."
            " Leave the option out to resume, or start another run with --out DIR."
        )
