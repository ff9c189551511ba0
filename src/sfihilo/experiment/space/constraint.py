"""A constraint between parameters, written as text ("peak_time + rise_time <= 60").

Text comes from a file that somebody else may have written, so it is parsed, and only a short list
of node types is compiled to functions; nothing is ever given to `eval`. A constraint that cannot be
computed (a division by zero) does not hold.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Columns: TypeAlias = Mapping[str, npt.NDArray[np.floating]]
PolicyRule: TypeAlias = Callable[[dict[str, float]], bool]
Computed: TypeAlias = Callable[[Columns], Any]

_ARITHMETIC: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_SIGNS: dict[type[ast.AST], Callable[..., Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
_COMPARISONS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.LtE: operator.le,
    ast.Lt: operator.lt,
    ast.GtE: operator.ge,
    ast.Gt: operator.gt,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "max": lambda *values: np.maximum.reduce(np.broadcast_arrays(*values)),
    "min": lambda *values: np.minimum.reduce(np.broadcast_arrays(*values)),
    "sqrt": np.sqrt,
}
LONGEST_TEXT = 1000
LARGEST_NUMBER = 1e300


@dataclass(frozen=True)
class Constraint:
    """A text constraint over named parameters, validated and compiled when it is made."""

    text: str
    names: frozenset[str]
    _compute: Computed = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.text) > LONGEST_TEXT:
            raise ValueError(
                f"constraint: expected at most {LONGEST_TEXT} characters, got {len(self.text)}"
            )
        object.__setattr__(self, "_compute", _Compiler(self.text, self.names).compiled())

    def holds(self, columns: Columns) -> npt.NDArray[np.bool_]:
        """Whether each row of the policies satisfies the constraint."""
        rows = len(next(iter(columns.values())))
        with np.errstate(all="ignore"):
            held = self._compute(columns)
        return np.broadcast_to(np.asarray(held, dtype=bool), (rows,))


@dataclass(frozen=True)
class _Compiler:
    """Turns the syntax tree of one constraint into a function of the columns, or refuses it."""

    text: str
    names: frozenset[str]

    def compiled(self) -> Computed:
        try:
            tree = ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError(f"constraint: cannot read {self.text!r}: {error}") from error
        try:
            return self._condition(tree)
        except RecursionError:
            raise self._refusal("it is nested too deeply") from None

    def _refusal(self, problem: str) -> ValueError:
        return ValueError(
            f"constraint {self.text!r}: {problem}; expected comparisons (<=, <, >=, >) of "
            f"parameters and numbers with + - * / ** and {', '.join(sorted(_FUNCTIONS))}, "
            "joined by 'and' / 'or'"
        )

    def _condition(self, node: ast.expr) -> Computed:
        """A comparison, or several joined by and / or."""
        match node:
            case ast.BoolOp(op=op, values=values):
                join = np.logical_and if isinstance(op, ast.And) else np.logical_or
                parts = [self._condition(value) for value in values]
                return lambda columns: join.reduce(
                    np.broadcast_arrays(*[part(columns) for part in parts])
                )
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                if not all(type(op) in _COMPARISONS for op in ops):
                    raise self._refusal("this comparison is not allowed")
                sides = [self._number(value) for value in [left, *comparators]]
                return partial(_compared, sides, [_COMPARISONS[type(op)] for op in ops])
        raise self._refusal("this is not a comparison")

    def _number(self, node: ast.expr) -> Computed:
        match node:
            case ast.Constant(value=int() | float() as constant) if not isinstance(constant, bool):
                if not abs(constant) < LARGEST_NUMBER:
                    raise self._refusal("a number is too large")
                number = np.float64(constant)
                return lambda columns: number
            case ast.Name(id=name):
                if name not in self.names:
                    known = ", ".join(sorted(self.names))
                    raise self._refusal(f"{name!r} is no parameter (known: {known})")
                return lambda columns: columns[name]
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _SIGNS:
                return _applied(_SIGNS[type(op)], [self._number(operand)])
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return _applied(_ARITHMETIC[type(op)], [self._number(left), self._number(right)])
            case ast.Call(func=ast.Name(id=name), args=[_, *_] as args, keywords=[]):
                if name not in _FUNCTIONS:
                    raise self._refusal(f"{name!r} is no known function")
                if name not in ("min", "max") and len(args) != 1:
                    raise self._refusal(f"{name} takes one argument")
                return _applied(_FUNCTIONS[name], [self._number(value) for value in args])
        raise self._refusal(f"{ast.unparse(node)!r} is not allowed")


def _applied(function: Callable[..., Any], arguments: Sequence[Computed]) -> Computed:
    return lambda columns: function(*[argument(columns) for argument in arguments])


def _compared(
    sides: Sequence[Computed], comparisons: Sequence[Callable[..., Any]], columns: Columns
) -> Any:
    """Whether a chain of comparisons holds; it does not where a side is not finite."""
    values = [side(columns) for side in sides]
    held: Any = np.logical_and.reduce(np.broadcast_arrays(*[np.isfinite(v) for v in values]))
    for comparison, first, second in zip(comparisons, values, values[1:], strict=False):
        held = np.logical_and(held, comparison(first, second))
    return held
