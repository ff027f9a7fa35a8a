"""The code that did it: excerpts read at report time from the installed package, so that the report cannot disagree with it."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType


@dataclass(frozen=True)
class Listing:
    """An excerpt of a source file."""

    path: str
    first_line: int
    code: str


@dataclass(frozen=True)
class Excerpt:
    """What to show of a module: these functions, classes or methods (`MarginHead.forward`), or all of it when none is found."""

    module: str
    names: tuple[str, ...] = ()


def listing(excerpt: Excerpt) -> Listing | None:
    """Read an excerpt. None where the module or its source is not to be had, as in a frozen application."""
    try:
        module = importlib.import_module(excerpt.module)
        source = inspect.getsource(module)
    except (ImportError, OSError, TypeError):
        return None
    lines = source.splitlines()
    spans = [span for name in excerpt.names if (span := _span(ast.parse(source), name)) is not None]
    path = excerpt.module.replace(".", "/") + ".py"
    if not spans:
        first = _first_definition(module, source)
        return Listing(path, first, "\n".join(lines[first - 1 :]).rstrip())
    spans.sort()
    blocks = [textwrap.dedent("\n".join(lines[start - 1 : end])) for start, end in spans]
    return Listing(path, spans[0][0], "\n\n".join(blocks))


def listings(excerpts: Sequence[Excerpt]) -> tuple[Listing, ...]:
    found = (listing(excerpt) for excerpt in excerpts)
    return tuple(entry for entry in found if entry is not None)


def _span(tree: ast.AST, dotted: str) -> tuple[int, int] | None:
    """First and last line of a definition, decorators included."""
    head, _, rest = dotted.partition(".")
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == head:
            if rest:
                return _span(node, rest)
            start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            return start, node.end_lineno or node.lineno
    return None


def _first_definition(module: ModuleType, source: str) -> int:
    """The line of the first class or function; imports and the module's docstring are not what a reader came for."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return 1
