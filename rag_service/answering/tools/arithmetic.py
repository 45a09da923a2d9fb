"""Arithmetic on given figures: `52 * 1.15`, `(120 - 80) / 80`, `52 + 15 % * 52`."""

from __future__ import annotations

import ast
import re
from decimal import Context, Decimal, DecimalException, localcontext

from rag_service.errors import InputError

MAX_LENGTH = 200  # characters
_PERCENT = re.compile(r"(\d*\.?\d+)\s*%(?!\s*[\d(])")  # "15 %", not the rest of a division
_SIGNS = str.maketrans({"×": "*", "÷": "/", "−": "-", "–": "-"})
_WRONG = "The expression takes numbers with a decimal point, + - * / % and brackets, such as 52 * 1.15."
_PRECISE = Context(prec=28)


def calculate(expression: str) -> Decimal:
    """Return the value of an expression. Raises InputError, which repeats none of it, if it is no arithmetic."""
    plain = _PERCENT.sub(r"(\1/100)", expression.translate(_SIGNS).strip())
    if not 0 < len(plain) <= 2 * MAX_LENGTH:
        raise InputError(_WRONG, field="expression")
    try:
        with localcontext(_PRECISE):
            value = _value(ast.parse(plain, mode="eval").body)
    except (SyntaxError, ValueError, DecimalException, RecursionError, MemoryError) as error:
        raise InputError(_WRONG, field="expression") from error
    if not value.is_finite():
        raise InputError(_WRONG, field="expression")
    return value


def _value(node: ast.expr) -> Decimal:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return Decimal(repr(number))
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _value(left) + _value(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _value(left) - _value(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _value(left) * _value(right)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _value(left) / _value(right)
    raise ValueError("no arithmetic")
