"""What is asked of every loss in `arcwise bench losses`: one function a question, each with a number for an answer.

Notation: B embeddings, width D, N classes, M = N·K centres. Whatever is called truth is computed in float64 from the papers' formulas.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from arcwise.benchmarks.peers import MARGINS, Contender, Shape

MANY = Shape(num_classes=1000, dim=512, scale=64.0)
TWO = Shape(num_classes=2, dim=2, scale=64.0)
HUGE, TINY = 1e20, 1e-20
WRONG = 1e-3  # a loss that is off by more than this share is counted as wrong
ANGLES = 720

Answer = float | str


@dataclass(frozen=True)
class Trial:
    """A question, how its answers are written, and the function that answers it for one contender and one seed."""

    key: str
    words: str
    unit: str
    ask: Callable[[Contender, int], Answer]


def on_the_centre(contender: Contender, seed: int) -> float:
    """The share of rows with a gradient that is not finite, for embeddings that equal a centre of their class."""
    return _bad_rows(contender, seed, lambda own_BD: own_BD)


def loss_on_the_centre(contender: Contender, seed: int) -> float:
    """The loss there, whose true value is below 1e-5."""
    x_BD, w_MD, labels_B = _many(contender, seed)
    return float(contender.with_centres(MANY, w_MD)(x_BD, labels_B).detach())


def opposite(contender: Contender, seed: int) -> float:
    """The same share for embeddings that point away from the centre of their class."""
    return _bad_rows(contender, seed, lambda own_BD: -own_BD)


def on_the_centre_in_bf16(contender: Contender, seed: int) -> float:
    """The same share for embeddings in bfloat16 that equal a centre of their class, under autocast."""
    with torch.autocast("cpu", torch.bfloat16):
        return _bad_rows(contender, seed, lambda own_BD: own_BD.bfloat16())


def centres_after_a_bf16_step(contender: Contender, seed: int) -> float:
    """The share of centres that are not finite after one step on such embeddings."""
    x_BD, w_MD, labels_B = _many(contender, seed)
    module = contender.with_centres(MANY, w_MD)
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1)
    with torch.autocast("cpu", torch.bfloat16):
        module(x_BD.bfloat16(), labels_B).backward()
    optimiser.step()
    return _share_of_bad(contender.rows(contender.centres(module).detach()))


def type_after_a_bf16_forward(contender: Contender, seed: int) -> str:
    """What type the float32 centres have after one forward of bfloat16 embeddings."""
    x_BD, w_MD, labels_B = _many(contender, seed)
    module = contender.with_centres(MANY, w_MD)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        module(x_BD[:4].bfloat16(), labels_B[:4])
    return str(contender.centres(module).dtype).removeprefix("torch.")


def bf16_without_autocast(contender: Contender, seed: int) -> str:
    """Whether bfloat16 embeddings are taken beside float32 centres."""
    x_BD, w_MD, labels_B = _many(contender, seed)
    try:
        contender.with_centres(MANY, w_MD)(x_BD[:4].bfloat16(), labels_B[:4])
    except RuntimeError:
        return "refused"
    return "taken"


def huge(contender: Contender, seed: int) -> Answer:
    """The share of rows of length 1e20 whose loss is wrong or whose gradient is not finite."""
    return _wrong_at_length(contender, seed, HUGE)


def tiny(contender: Contender, seed: int) -> Answer:
    """The share of rows of length 1e-20 whose loss is wrong or whose gradient is not finite."""
    return _wrong_at_length(contender, seed, TINY)


def two_classes(contender: Contender, seed: int) -> float:
    """The relative error of the loss of two classes at 148° and 134°, where exp(s(cos θ − 1)) underflows for both."""
    own, other = math.acos(-0.85), math.acos(-0.7)
    w_ND = torch.tensor([[math.cos(own), math.sin(own)], [math.cos(other), math.sin(other)]], dtype=torch.float32)
    w_MD = w_ND.repeat_interleave(contender.centres_per_class, dim=0)
    x_BD, labels_B = torch.tensor([[1.0, 0.0]]), torch.zeros(1, dtype=torch.long)
    true = float(truth(contender, x_BD.double(), w_MD.double(), labels_B, TWO.scale))
    return abs(float(contender.with_centres(TWO, w_MD)(x_BD, labels_B).detach()) - true) / true


def rising_share(contender: Contender, seed: int) -> float:
    """The share of [0, π] on which the target logit rises with the angle."""
    psi, _ = curve(contender)
    return float((psi.diff() > 1e-9).double().mean())


def highest_past_the_lowest(contender: Contender, seed: int) -> float:
    """How far above its lowest value ψ ends at θ = π: what is earned by turning away from there."""
    psi, _ = curve(contender)
    return float(psi[-1] - psi.min())


def jump(contender: Contender, seed: int) -> float:
    """The largest change of ψ from one angle to the next that its slopes do not explain; a kink's share of it is below 0.01."""
    psi, slope = curve(contender)
    explained = (slope[1:] + slope[:-1]) / 2 * math.pi / ANGLES
    largest = float((psi.diff() - explained).abs().max())
    return largest if largest > 0.01 else 0.0


def turns_away_share(contender: Contender, seed: int) -> float:
    """The share of [0, π] on which a step along the gradient turns the embedding away from its centre."""
    _, slope = curve(contender)
    return float((slope > 1e-9).double().mean())


def loss_error(contender: Contender, seed: int) -> float:
    """The relative error of the loss on ordinary embeddings in float32."""
    return _errors(contender, seed, torch.float32)[0]


def embedding_gradient_error(contender: Contender, seed: int) -> float:
    """The relative error of the gradient of the embeddings."""
    return _errors(contender, seed, torch.float32)[1]


def centre_gradient_error(contender: Contender, seed: int) -> float:
    """The relative error of the gradient of the centres."""
    return _errors(contender, seed, torch.float32)[2]


def bf16_gradient_error(contender: Contender, seed: int) -> float:
    """The relative error of the gradient of the centres for embeddings in bfloat16, against the truth for these very embeddings."""
    return _errors(contender, seed, torch.bfloat16)[2]


TRIALS = (
    Trial("on_centre_bad_rows", "on the centre: rows not finite", "share of rows", on_the_centre),
    Trial("on_centre_loss", "on the centre: loss", "number", loss_on_the_centre),
    Trial("opposite_bad_rows", "opposite to it: rows not finite", "share of rows", opposite),
    Trial("on_centre_bf16_bad_rows", "the same in bf16 autocast", "share of rows", on_the_centre_in_bf16),
    Trial("bf16_step_bad_centres", "centres not finite after that step", "share of rows", centres_after_a_bf16_step),
    Trial("bf16_forward_dtype", "float32 centres become", "type", type_after_a_bf16_forward),
    Trial("bf16_without_autocast", "bf16 embeddings outside autocast", "type", bf16_without_autocast),
    Trial("huge_wrong_rows", "length 1e20: rows wrong", "share of rows", huge),
    Trial("tiny_wrong_rows", "length 1e-20: rows wrong", "share of rows", tiny),
    Trial("two_classes_error", "two classes: loss off by", "error", two_classes),
    Trial("rising_share", "target logit rises, of 0° … 180°", "share of angles", rising_share),
    Trial("rise", "its rise from the lowest to 180°", "number", highest_past_the_lowest),
    Trial("jump", "its largest jump", "number", jump),
    Trial("turns_away_share", "gradient turns away, of 0° … 180°", "share of angles", turns_away_share),
    Trial("loss_error", "ordinary: loss off by", "error", loss_error),
    Trial("dx_error", "ordinary: dx off by", "error", embedding_gradient_error),
    Trial("dw_error", "ordinary: dW off by", "error", centre_gradient_error),
    Trial("bf16_dw_error", "the same in bf16: dW off by", "error", bf16_gradient_error),
)


def ask(trial: Trial, contender: Contender, seed: int) -> Answer:
    """The answer, or the sentence with which the contender refuses."""
    torch.manual_seed(seed)
    with _quiet():
        try:
            return trial.ask(contender, seed)
        except Exception as error:  # a peer may raise anything; that is an answer too
            return f"{type(error).__name__}"


def truth(contender: Contender, x_BD: Tensor, w_MD: Tensor, labels_B: Tensor, scale: float) -> Tensor:
    """(B,) the losses in float64, each by its own definition, with arccosines of what lies inside (−1, 1)."""
    cos_BM = F.normalize(x_BD, eps=0.0) @ F.normalize(w_MD, eps=0.0).T
    cos_BN = cos_BM.unflatten(1, (-1, contender.centres_per_class)).amax(dim=2)
    own_B = cos_BN.gather(1, labels_B.unsqueeze(1)).squeeze(1)
    psi_B = true_psi(contender, own_B)
    logits_BN = scale * cos_BN.scatter(1, labels_B.unsqueeze(1), psi_B.unsqueeze(1))
    if contender.times_length:
        logits_BN = logits_BN * x_BD.norm(dim=1, keepdim=True)
    return F.cross_entropy(logits_BN, labels_B, reduction="none")


def true_psi(contender: Contender, cos_B: Tensor) -> Tensor:
    """ψ(θ) as the papers have it, with the contender's own continuation where there is a choice."""
    m, theta_B = MARGINS[contender.loss], torch.acos(cos_B)
    if contender.loss == "CosFace":
        return cos_B - m
    if contender.loss == "SphereFace":
        k_B = (m * theta_B.detach() / math.pi).floor()
        return (1 - 2 * (k_B % 2)) * torch.cos(m * theta_B) - 2 * k_B
    beyond_B = cos_B - (m * math.sin(m) if contender.continuation == "classic" else 1 - math.cos(m))
    return torch.where(theta_B + m > math.pi, beyond_B, torch.cos(theta_B + m))


@cache
def curve(contender: Contender) -> tuple[Tensor, Tensor]:
    """ψ(θ) and the slope dψ/dθ that the gradient follows, in the middles of `ANGLES` parts of [0, π], read off the loss in float64.

    The embedding turns in a plane at a right angle to the only other centre: with the other logit at 0 the loss is
    log(1 + exp(−s·ψ)), and its slope is −s·(1 − exp(−loss))·dψ/dθ.
    """
    shape = Shape(2, 4, 4.0)
    w_MD = torch.eye(4, dtype=torch.float64)[[0, 3]].repeat_interleave(contender.centres_per_class, dim=0)
    module = contender.with_centres(shape, w_MD)
    label = torch.zeros(1, dtype=torch.long)
    psi, slope = [], []
    for i in range(ANGLES):
        theta = (i + 0.5) * math.pi / ANGLES
        x = torch.tensor([[math.cos(theta), math.sin(theta), 0.0, 0.0]], dtype=torch.float64, requires_grad=True)
        loss = module(x, label)
        (gradient,) = torch.autograd.grad(loss, x)
        value = float(loss.detach())
        turning = float(gradient[0, 1]) * math.cos(theta) - float(gradient[0, 0]) * math.sin(theta)
        psi.append(-math.log(math.expm1(value)) / shape.scale)
        slope.append(turning / (shape.scale * math.expm1(-value)))
    return torch.tensor(psi, dtype=torch.float64), torch.tensor(slope, dtype=torch.float64)


def _many(contender: Contender, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """A class for each embedding, which equals its (first) centre. (B, D), (M, D), (B,)"""
    generator = torch.Generator().manual_seed(seed)
    w_MD = torch.randn(MANY.num_classes * contender.centres_per_class, MANY.dim, generator=generator)
    return w_MD[:: contender.centres_per_class].clone(), w_MD, torch.arange(MANY.num_classes)


def _bad_rows(contender: Contender, seed: int, place: Callable[[Tensor], Tensor]) -> float:
    own_BD, w_MD, labels_B = _many(contender, seed)
    x_BD = place(own_BD).requires_grad_()
    contender.with_centres(MANY, w_MD)(x_BD, labels_B).backward()
    assert x_BD.grad is not None
    return _share_of_bad(x_BD.grad)


def _share_of_bad(rows: Tensor) -> float:
    return float((~rows.isfinite()).any(dim=1).double().mean())


def _wrong_at_length(contender: Contender, seed: int, length: float, rows: int = 32) -> Answer:
    if contender.times_length:
        return "–"  # its loss is meant to depend on the length
    x_BD, w_MD, labels_B = _ordinary(contender, seed, rows)
    x_BD = F.normalize(x_BD) * length
    true_B = truth(contender, x_BD.double(), w_MD.double(), labels_B, MANY.scale)
    module = contender.with_centres(MANY, w_MD)
    wrong = 0
    for i in range(rows):
        row = x_BD[i : i + 1].clone().requires_grad_()
        loss = module(row, labels_B[i : i + 1])
        (gradient,) = torch.autograd.grad(loss, row)
        right = abs(float(loss.detach()) - float(true_B[i])) <= WRONG * max(1.0, float(true_B[i]))
        wrong += not (right and bool(gradient.isfinite().all()))
    return wrong / rows


def _ordinary(contender: Contender, seed: int, rows: int = 256) -> tuple[Tensor, Tensor, Tensor]:
    """Embeddings of length 1, 20° to 80° from a centre of their class: the angles of a network that is being trained."""
    generator = torch.Generator().manual_seed(seed)
    per_class = contender.centres_per_class
    w_MD = torch.randn(MANY.num_classes * per_class, MANY.dim, generator=generator)
    labels_B = torch.randint(0, MANY.num_classes, (rows,), generator=generator)
    u_BD = F.normalize(w_MD[labels_B * per_class])
    noise_BD = torch.randn(rows, MANY.dim, generator=generator)
    v_BD = F.normalize(noise_BD - (noise_BD * u_BD).sum(dim=1, keepdim=True) * u_BD)
    theta_B1 = torch.deg2rad(20 + 60 * torch.rand(rows, 1, generator=generator))
    return theta_B1.cos() * u_BD + theta_B1.sin() * v_BD, w_MD, labels_B


@cache
def _errors(contender: Contender, seed: int, dtype: torch.dtype) -> tuple[float, float, float]:
    """How far loss, dx and dW are from the truth, as ‖g − g64‖/‖g64‖."""
    x_BD, w_MD, labels_B = _ordinary(contender, seed)
    x_BD = x_BD.to(dtype).requires_grad_()
    module = contender.with_centres(MANY, w_MD)
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
        loss = module(x_BD, labels_B)
    loss.backward()
    x64_BD, w64_MD = x_BD.detach().double().requires_grad_(), w_MD.double().requires_grad_()
    true = truth(contender, x64_BD, w64_MD, labels_B, MANY.scale).mean()
    true.backward()
    assert x_BD.grad is not None
    centres = contender.centres(module)
    assert centres.grad is not None
    return (
        _relative(loss.detach(), true.detach()),
        _relative(x_BD.grad, x64_BD.grad),
        _relative(contender.rows(centres.grad), w64_MD.grad),
    )


def _relative(given: Tensor, true: Tensor | None) -> float:
    assert true is not None
    return float((given.double() - true).norm() / true.norm())


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what other libraries warn about to themselves: the answers are what is printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
