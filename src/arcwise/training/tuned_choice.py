"""Whether a tuned setting is used for a loss, and how that is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from arcwise.errors import ConfigError, did_you_mean
from arcwise.training.config import LossConfig
from arcwise.training.loss_spec import LossSpec
from arcwise.training.tuned_settings import TunedLoss, TunedSettings, shipped_for


@dataclass(frozen=True)
class TunedChoice:
    """A loss's setting that was found by tuning, and why it is used."""

    setting: TunedLoss
    reason: str

    @property
    def lr_factor(self) -> float:
        """What the recipe's learning rate is multiplied by."""
        return self.setting.lr_factor

    def applied_to(self, loss: LossConfig) -> LossConfig:
        """The loss with what tuning found in place of what was chosen."""
        found = self.setting
        terms = {name: {**table, **found.terms.get(name, {})} for name, table in loss.terms.items()}
        return replace(loss, scale=found.scale or loss.scale, margin={**loss.margin, **found.margin}, terms=terms)


def find_tuned(
    loss: LossSpec,
    given: Mapping[str, float | None],
    own: TunedSettings | None,
    use_shipped: bool,
    data: str,
    dim: int,
) -> TunedChoice | None:
    """The tuned setting of a loss: from the user's own file, or else the one that is shipped for the data set.

    Shipped settings stand back behind a scale or margin of the user's, and where they were found with another dim.

    Args:
        loss: as it was asked for.
        given: the scale and the margin that the user gave, by option.
        own: the user's own file.
        use_shipped: whether the shipped ones may be used at all.
        data: the name of the data set.
    """
    if own is not None:
        return _from_own(loss, given, own, data, dim)
    if not use_shipped or any(value is not None for value in given.values()):
        return None
    shipped = shipped_for(data)
    found = shipped.find(loss) if shipped is not None and shipped.dim == dim else None
    if shipped is None or found is None:
        return None
    return TunedChoice(found, f"{loss.label}: {_told(found)}, {shipped.reason}.")


def _from_own(
    loss: LossSpec, given: Mapping[str, float | None], own: TunedSettings, data: str, dim: int
) -> TunedChoice:
    for option, value in given.items():
        if value is not None:
            raise ConfigError(f"{own.where} settles the loss; got {option} {value:g} as well. Leave one of them out.")
    if own.dim != dim:
        raise ConfigError(f"{own.where} was tuned with --dim {own.dim}; got {dim}. Use that, or tune again.")
    found = own.find(loss)
    if found is None:
        raise ConfigError(f"{own.where} has no setting for {loss.label}. {did_you_mean(loss.label, own.losses)}")
    other = f" That was on {own.data}, and this is {data}." if own.data != data else ""
    return TunedChoice(found, f"{loss.label}: {_told(found)}, {own.reason}.{other}")


def _told(loss: TunedLoss) -> str:
    terms = {f"{term} {name}": value for term, table in loss.terms.items() for name, value in table.items()}
    found = {**({"scale": loss.scale} if loss.scale else {}), **loss.margin, **terms}
    words = [f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in found.items()]
    words += [f"{loss.lr_factor:g} times the usual learning rate"] if loss.lr_factor != 1 else []
    return ", ".join(words) or "the default setting"
