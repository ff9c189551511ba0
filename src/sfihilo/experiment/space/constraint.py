"""A rule between parameters, written as text ("peak_time + rise_time <= 60") or as a function.

Text comes from a file that somebody else may have written, so it is parsed and only a short list
of node types is computed; nothing is ever given to `eval`. What cannot be computed (a division by
zero) does not hold: a rule errs on the safe side.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Columns: TypeAlias = Mapping[str, npt.NDArray[np.floating]]
PolicyRule: TypeAlias = Callable[[dict[str, float]], bool]

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
    """A text rule over named parameters, checked when it is made."""

    text: str
    names: frozenset[str]

    def __post_init__(self) -> None:
        if len(self.text) > LONGEST_TEXT:
            raise ValueError(
                f"constraint: expected at most {LONGEST_TEXT} characters, got {len(self.text)}"
            )
        _check_rule(_parsed(self.text), self.text, self.names)

    def holds(self, columns: Columns) -> npt.NDArray[np.bool_]:
        """Whether each row of the policies satisfies the rule."""
        rows = len(next(iter(columns.values())))
        with np.errstate(all="ignore"):
            kept = _compute(_parsed(self.text), columns)
        return np.broadcast_to(np.asarray(kept, dtype=bool), (rows,))


def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"constraint: cannot read {text!r}: {error}") from error


def _refuse(text: str, problem: str) -> ValueError:
    return ValueError(
        f"constraint {text!r}: {problem}; expected comparisons (<=, <, >=, >) of parameters and "
        f"numbers with + - * / ** and {', '.join(sorted(_FUNCTIONS))}, joined by 'and' / 'or'"
    )


def _check_rule(node: ast.expr, text: str, names: frozenset[str]) -> None:
    """A rule is a comparison, or several joined by and / or."""
    match node:
        case ast.BoolOp(values=values):
            for value in values:
                _check_rule(value, text, names)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            if not all(type(op) in _COMPARISONS for op in ops):
                raise _refuse(text, "this comparison is not allowed")
            for value in [left, *comparators]:
                _check_number(value, text, names)
        case _:
            raise _refuse(text, "this is not a comparison")


def _check_number(node: ast.expr, text: str, names: frozenset[str]) -> None:
    match node:
        case ast.Constant(value=int() | float() as constant) if not isinstance(constant, bool):
            if not abs(constant) < LARGEST_NUMBER:
                raise _refuse(text, "a number is too large")
        case ast.Name(id=name):
            if name not in names:
                raise _refuse(text, f"{name!r} is no parameter (known: {', '.join(sorted(names))})")
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _SIGNS:
            _check_number(operand, text, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            _check_number(left, text, names)
            _check_number(right, text, names)
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as args, keywords=[]):
            if name not in _FUNCTIONS:
                raise _refuse(text, f"{name!r} is no known function")
            if name not in ("min", "max") and len(args) != 1:
                raise _refuse(text, f"{name} takes one argument")
            for argument in args:
                _check_number(argument, text, names)
        case _:
            raise _refuse(text, f"{ast.unparse(node)!r} is not allowed")


def _compute(node: ast.expr, columns: Columns) -> Any:
    match node:
        case ast.BoolOp(op=op, values=values):
            join = np.logical_and if isinstance(op, ast.And) else np.logical_or
            return join.reduce(np.broadcast_arrays(*[_compute(value, columns) for value in values]))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            sides = [_compute(value, columns) for value in [left, *comparators]]
            held: Any = np.logical_and.reduce(np.broadcast_arrays(*[np.isfinite(s) for s in sides]))
            for comparison, first, second in zip(ops, sides, sides[1:], strict=False):
                held = np.logical_and(held, _COMPARISONS[type(comparison)](first, second))
            return held
        case ast.Constant(value=value) if isinstance(value, int | float):
            return np.float64(value)
        case ast.Name(id=name):
            return columns[name]
        case ast.UnaryOp(op=op, operand=operand):
            return _SIGNS[type(op)](_compute(operand, columns))
        case ast.BinOp(left=left, op=op, right=right):
            return _ARITHMETIC[type(op)](_compute(left, columns), _compute(right, columns))
        case ast.Call(func=ast.Name(id=name), args=args):
            return _FUNCTIONS[name](*[_compute(value, columns) for value in args])
    raise ValueError(f"constraint: unexpected {ast.dump(node)}")  # _check_rule lets none through
