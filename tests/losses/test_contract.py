"""What every term must do, whatever it computes. A new term joins by being registered."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from arcwise.errors import ConfigError
from arcwise.losses import Term, build, names, term_class

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
# Each with all of its variants, as keyword arguments.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "triplet": [{"mining": "hard"}, {"mining": "semi-hard"}, {"mining": "all"}],
    "inter": [{"over": "classes"}, {"over": "batch"}],
    "circle": [{"gradient": "detached"}, {"gradient": "exact"}],
}
CASES = [(name, parameters) for name in names() for parameters in VARIANTS.get(name, [{}])]
every_term = pytest.mark.parametrize(("name", "parameters"), CASES, ids=[f"{n}-{p}" if p else n for n, p in CASES])

NUM_CLASSES, DIM = 5, 4


def make(name: str, parameters: dict[str, Any], dtype: torch.dtype = torch.float32, dim: int = DIM) -> Term:
    return build(name, dim, NUM_CLASSES, parameters).to(dtype)


def run(term: Term, x: Tensor, labels: Tensor, w: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The value and the gradients of embeddings, centres and parameters; zeros for what has no part in it."""
    x, w = x.detach().clone().requires_grad_(), w.detach().clone().requires_grad_()
    value = term(x, labels, w)
    wanted = [x, w, *term.parameters()]
    found = torch.autograd.grad(value, wanted, allow_unused=True)
    return value.detach(), [g if g is not None else torch.zeros_like(t) for g, t in zip(found, wanted, strict=True)]


# The gradient of the others is not the derivative of their value; test_circle holds it to the paper's.
DERIVATIVES = [case for case in CASES if case[1].get("gradient") != "detached"]


@pytest.mark.parametrize(("name", "parameters"), DERIVATIVES, ids=str)
def test_gradcheck_passes_in_float64(name: str, parameters: dict[str, Any]) -> None:
    term = make(name, parameters, torch.float64).eval()
    x = torch.randn(9, DIM, dtype=torch.float64, requires_grad=True)
    w = torch.randn(NUM_CLASSES, DIM, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 0, 1, 1, 2, -1, 3, 0, 4])
    own = dict(term.named_parameters())

    def value(x: Tensor, w: Tensor, *given: Tensor) -> Any:
        return torch.func.functional_call(term, dict(zip(own, given, strict=True)), (x, labels, w))

    assert torch.autograd.gradcheck(value, (x, w, *own.values()))


@every_term
@given(seed=st.integers(0, 2**31), dim=st.integers(2, 8))
@settings(deadline=None, max_examples=15)
def test_rotating_everything_changes_no_value_and_rotates_the_gradients(
    name: str, parameters: dict[str, Any], seed: int, dim: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    x, w = (torch.randn(n, dim, dtype=torch.float64, generator=generator) for n in (9, NUM_CLASSES))
    rotation, _ = torch.linalg.qr(torch.randn(dim, dim, dtype=torch.float64, generator=generator))
    labels = torch.randint(-1, NUM_CLASSES, (9,), generator=generator)
    term = make(name, parameters, torch.float64, dim).eval()
    value, gradients = run(term, x, labels, w)
    with torch.no_grad():
        for own in [*term.parameters(), *term.buffers()]:
            own.copy_(own @ rotation)
    turned, turned_gradients = run(term, x @ rotation, labels, w @ rotation)
    torch.testing.assert_close(turned, value)
    for before, after in zip(gradients, turned_gradients, strict=True):
        torch.testing.assert_close(after, before @ rotation, rtol=1e-6, atol=1e-9)


@every_term
@given(seed=st.integers(0, 2**31), exponent=st.floats(-100, 100))
@settings(deadline=None, max_examples=15)
def test_an_angular_term_says_the_same_of_embeddings_and_centres_of_any_length(
    name: str, parameters: dict[str, Any], seed: int, exponent: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    x, w = (torch.randn(n, DIM, dtype=torch.float64, generator=generator) for n in (9, NUM_CLASSES))
    lengths = 10 ** (exponent * torch.rand(9, 1, dtype=torch.float64, generator=generator))
    labels = torch.randint(-1, NUM_CLASSES, (9,), generator=generator)
    term = make(name, parameters, torch.float64)
    before, longer = term(x, labels, w), term(lengths * x, labels, 3 * w)
    if term.is_angular:
        torch.testing.assert_close(longer, before, rtol=1e-6, atol=1e-9)
    elif bool((labels >= 0).any()) and abs(exponent) > 1:
        assert not torch.allclose(longer, before)


@every_term
@every_dtype
def test_ignored_samples_change_nothing_even_if_they_are_not_numbers(
    name: str, parameters: dict[str, Any], dtype: torch.dtype
) -> None:
    x, w = torch.randn(9, DIM).to(dtype), torch.randn(NUM_CLASSES, DIM)
    labels = torch.tensor([0, -1, 2, 2, -1, 0, 0, 1, -1])
    keep = labels >= 0
    x[1], x[4] = torch.nan, torch.inf
    term = make(name, parameters)
    term.eval()
    value, (dx, dw, *own) = run(term, x, labels, w)
    alone, (dx_alone, dw_alone, *own_alone) = run(term, x[keep], labels[keep], w)
    torch.testing.assert_close(value, alone)
    torch.testing.assert_close(dx[keep], dx_alone)
    torch.testing.assert_close(dw, dw_alone)
    torch.testing.assert_close(own, own_alone)
    assert torch.equal(dx[~keep], torch.zeros(3, DIM, dtype=dtype))


@every_term
@every_dtype
@pytest.mark.parametrize("batch", [0, 1, 6])
@pytest.mark.parametrize("training", [True, False])
def test_without_a_label_the_value_and_every_gradient_are_zero(
    name: str, parameters: dict[str, Any], dtype: torch.dtype, batch: int, training: bool
) -> None:
    term = make(name, parameters).train(training)
    before = {key: value.clone() for key, value in term.state_dict().items()}
    value, gradients = run(
        term, torch.randn(batch, DIM).to(dtype), torch.full((batch,), -1), torch.randn(NUM_CLASSES, DIM)
    )
    assert float(value) == 0
    assert all(torch.equal(g, torch.zeros_like(g)) for g in gradients)
    assert all(torch.equal(term.state_dict()[key], value) for key, value in before.items())


@pytest.mark.parametrize(("name", "parameters"), [case for case in CASES if case[0] in ("triplet", "circle")], ids=str)
@pytest.mark.parametrize(
    "labels", [[3], [0, 0, 0], [0, 1, 2], [-1, 4], [1, -1, 1]], ids=["one", "no negative", "no positive", "-1", "two"]
)
def test_without_a_pair_to_compare_a_term_on_pairs_and_its_gradients_are_zero(
    name: str, parameters: dict[str, Any], labels: list[int]
) -> None:
    value, gradients = run(
        make(name, parameters), torch.randn(len(labels), DIM), torch.tensor(labels), torch.randn(NUM_CLASSES, DIM)
    )
    assert float(value) == 0
    assert all(torch.equal(g, torch.zeros_like(g)) for g in gradients)


@every_term
@every_dtype
@pytest.mark.parametrize("side", [1.0, -1.0], ids=["equal", "opposite"])
@pytest.mark.parametrize("dim", [2, 512])
def test_gradients_are_finite_where_everything_lies_on_one_line(
    name: str, parameters: dict[str, Any], dtype: torch.dtype, side: float, dim: int
) -> None:
    """Each embedding equal or opposite to its centre, to its proxy and to a companion, and two centres alike."""
    w = torch.randn(NUM_CLASSES, dim)
    w[1], w[2] = w[0], -w[0]
    labels = torch.arange(12) % NUM_CLASSES
    x = side * 3 * w[labels]
    x[6:] *= side
    x = x.to(dtype)
    term = make(name, parameters, dim=dim)
    with torch.no_grad():
        for own in term.parameters():
            own.copy_(w)
    value, gradients = run(term, x, labels, w)
    assert value.isfinite()
    assert all(g.isfinite().all() for g in gradients)


@every_term
@pytest.mark.parametrize(
    ("dtype", "length"),
    [
        (torch.float64, 1e-300), (torch.float64, 1e300),
        (torch.float32, 1e-40), (torch.float32, 1e-30), (torch.float32, 1e30), (torch.float32, 1e38),
        (torch.bfloat16, 1e-40), (torch.bfloat16, 1e-30), (torch.bfloat16, 1e30),
        (torch.float16, 6e-8), (torch.float16, 1e-6), (torch.float16, 1e4),
    ],
    ids=str,
)  # fmt: skip
def test_gradients_are_finite_for_embeddings_of_any_length(
    name: str, parameters: dict[str, Any], dtype: torch.dtype, length: float
) -> None:
    x = (length * torch.nn.functional.normalize(torch.randn(12, DIM, dtype=torch.float64))).to(dtype)
    assert x.abs().amax(dim=1).min() > 0
    term = make(name, parameters, torch.float64 if dtype == torch.float64 else torch.float32)
    value, gradients = run(term, x, torch.arange(12) % NUM_CLASSES, torch.randn(NUM_CLASSES, DIM))
    assert all(g.isfinite().all() for g in gradients)
    assert value.isfinite() or not term.is_angular


@every_term
@every_dtype
def test_an_embedding_of_zeros_gets_no_gradient_from_an_angular_term_and_spoils_none(
    name: str, parameters: dict[str, Any], dtype: torch.dtype
) -> None:
    x = torch.randn(8, DIM).to(dtype)
    x[0] = 0
    term = make(name, parameters)
    value, gradients = run(term, x, torch.arange(8) % 3, torch.randn(NUM_CLASSES, DIM))
    assert value.isfinite()
    assert all(g.isfinite().all() for g in gradients)
    if term.is_angular:
        assert torch.equal(gradients[0][0], torch.zeros(DIM, dtype=dtype))


@every_term
@every_dtype
@pytest.mark.parametrize("autocast", [None, torch.bfloat16, torch.float16], ids=str)
def test_a_forward_keeps_every_dtype_and_works_in_float32_at_least(
    name: str, parameters: dict[str, Any], dtype: torch.dtype, autocast: torch.dtype | None
) -> None:
    term = make(name, parameters)
    x, w = torch.randn(12, DIM).to(dtype), torch.randn(NUM_CLASSES, DIM)
    labels = torch.arange(12) % NUM_CLASSES
    with torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
        value, gradients = run(term.eval(), x, labels, w)
    assert value.dtype == torch.promote_types(dtype, torch.float32)
    assert [g.dtype for g in gradients[:2]] == [dtype, torch.float32]
    assert all(t.dtype == torch.float32 for t in [*term.parameters(), *term.buffers()])
    plain, _ = run(term, x, labels, w)
    assert torch.equal(value, plain)


@every_term
def test_gradients_from_above_multiply_all_gradients(name: str, parameters: dict[str, Any]) -> None:
    term = make(name, parameters).eval()
    x, w, labels = torch.randn(12, DIM), torch.randn(NUM_CLASSES, DIM), torch.arange(12) % NUM_CLASSES
    _, once = run(term, x, labels, w)
    x, w = x.requires_grad_(), w.requires_grad_()
    wanted = [x, w, *term.parameters()]
    thrice = torch.autograd.grad(3 * term(x, labels, w), wanted, allow_unused=True)
    for g, g3 in zip(once, thrice, strict=True):
        torch.testing.assert_close(g3 if g3 is not None else torch.zeros_like(g), 3 * g)


@every_term
def test_the_state_of_a_term_loads_into_another(name: str, parameters: dict[str, Any]) -> None:
    first, second = make(name, parameters), make(name, parameters)
    x, w, labels = torch.randn(12, DIM), torch.randn(NUM_CLASSES, DIM), torch.arange(12) % NUM_CLASSES
    first(x.requires_grad_(), labels, w)
    second.load_state_dict(first.state_dict())
    assert torch.equal(first.eval()(x, labels, w), second.eval()(x, labels, w))


@every_term
@pytest.mark.parametrize("frozen", ["embeddings", "centres"])
def test_either_side_may_be_frozen(name: str, parameters: dict[str, Any], frozen: str) -> None:
    term = make(name, parameters).eval()
    x, w, labels = torch.randn(12, DIM), torch.randn(NUM_CLASSES, DIM), torch.arange(12) % NUM_CLASSES
    value, gradients = run(term, x, labels, w)
    x.requires_grad_(frozen == "centres")
    w.requires_grad_(frozen == "embeddings")
    again = term(x, labels, w)
    assert torch.equal(again.detach(), value)
    if again.requires_grad:
        again.backward()
    for side, expected in ((x, gradients[0]), (w, gradients[1])):
        assert side.grad is None or torch.equal(side.grad, expected)


@every_term
def test_a_term_without_centres_of_its_own_says_that_it_needs_the_heads_or_leaves_them_alone(
    name: str, parameters: dict[str, Any]
) -> None:
    term = make(name, parameters).eval()
    x, labels = torch.randn(12, DIM), torch.arange(12) % NUM_CLASSES
    if not term.needs_centers:
        assert torch.equal(term(x, labels), term(x, labels, torch.randn(NUM_CLASSES, DIM)))
        return
    for centers, message in (
        (None, r"needs the class centres; got none\. Pass them as centers=head\.weight"),
        (
            torch.randn(5, 3),
            r"class centres of the shape \(classes, 4\), .*; got \(5, 3\) in torch\.float32\. Pass head",
        ),
        (torch.randn(4), r"got \(4,\)"),
        (torch.ones(5, 4, dtype=torch.int64), r"got \(5, 4\) in torch\.int64"),
        (torch.randn(5, 4, device="meta"), "centers are on meta and embeddings on cpu; move one to the other"),
    ):
        with pytest.raises(ConfigError, match=f"{type(term).__name__} needs|{message}") as raised:
            term(x, labels, centers)
        assert raised.match(message)


@every_term
def test_what_is_no_batch_is_refused_in_a_sentence(name: str, parameters: dict[str, Any]) -> None:
    term = make(name, parameters)
    x, w, labels = torch.randn(3, DIM), torch.randn(NUM_CLASSES, DIM), torch.tensor([0, 1, -1])
    for bad_x, bad_labels, message in (
        (torch.randn(3), labels, r"embeddings must have the shape \(batch, (4|width)\); got \(3,\)"),
        (torch.ones(3, DIM, dtype=torch.int64), labels, "embeddings must be floating point numbers; got torch.int64"),
        (x, labels[:2], r"labels must have the shape \(3,\), one for each embedding; got \(2,\)"),
        (x, labels.float(), r"labels must be whole numbers; got torch\.float32"),
        (x, labels - 1, r"labels must be (in 0 … 4|0 or more), or −1 for a sample to ignore; got -2 … 0"),
    ):
        with pytest.raises(ConfigError, match=message):
            term(bad_x, bad_labels, w)
    if term.owns_centers:
        with pytest.raises(ConfigError, match=r"shape \(batch, 4\); got \(3, 5\)"):
            term(torch.randn(3, 5), labels, w)
    if term.owns_centers or term.needs_centers:
        with pytest.raises(ConfigError, match=r"labels must be in 0 … 4, or −1"):
            term(x, torch.tensor([0, 5, 1]), w)
    else:
        assert term(x, torch.tensor([0, 5, 1]), w) >= 0


@pytest.mark.parametrize("name", [name for name in names() if term_class(name).owns_centers])
def test_centres_of_its_own_need_a_size_that_tells_something_apart(name: str) -> None:
    for dim, num_classes, message in ((1, 5, "dim must be at least 2"), (3, 1, "num_classes must be at least 2")):
        with pytest.raises(ConfigError, match=message):
            build(name, dim, num_classes)


@every_term
def test_training_on_a_term_alone_makes_it_smaller(name: str, parameters: dict[str, Any]) -> None:
    """As in anyone's loop: embeddings, centres and the term's own parameters follow the gradient."""
    term = make(name, parameters)
    x, w = torch.randn(30, DIM, requires_grad=True), torch.randn(NUM_CLASSES, DIM, requires_grad=True)
    labels = torch.arange(30) % NUM_CLASSES
    optimiser = torch.optim.Adam([x, w, *term.parameters()], lr=0.02)
    before = float(term(x, labels, w).detach())
    for _ in range(100):
        optimiser.zero_grad()
        term(x, labels, w).backward()
        optimiser.step()
    after = float(term(x, labels, w).detach())
    assert after < before - 0.1 * abs(before)


@pytest.mark.parametrize("name", names())
def test_a_term_says_what_it_weighs_what_to_search_and_what_it_is(name: str) -> None:
    cls = term_class(name)
    assert 0 < cls.default_weight <= 1
    assert not (cls.needs_centers and cls.owns_centers)
    text = cls.__doc__ or ""
    for part in ("et al. 20", "Prefer ", "Asks for: ", "Take it when: ", "Formula:\n", "Paper:\n"):
        assert part in text
    for key, (low, high) in cls.search.items():
        for value in (low, high):
            assert build(name, 3, 4, {key: value})
