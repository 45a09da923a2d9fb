"""Passwords of local accounts: scrypt (RFC 7914) with the parameters of OWASP's password storage cheat sheet."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import unicodedata

MIN_CHARS = 12
MAX_CHARS = 200
_LOG_COST, _BLOCKS, _LANES = 15, 8, 3  # 32 MB and about a quarter of a second
_NOBODY = f"{_LOG_COST}${_BLOCKS}${_LANES}${'00' * 16}${'00' * 32}"


def hash_password(password: str) -> str:
    """Salted, with the parameters, so that these can change. Takes its time and memory: call it in a thread."""
    salt = secrets.token_bytes(16)
    made = _scrypt(password, salt, _LOG_COST, _BLOCKS, _LANES)
    return f"{_LOG_COST}${_BLOCKS}${_LANES}${salt.hex()}${made.hex()}"


def is_password(password: str, stored: str | None) -> bool:
    """Whether a password is the stored one. None, for an account that is not there, takes as long and is never true."""
    cost, blocks, lanes, salt, kept = (stored or _NOBODY).split("$")
    made = _scrypt(password, bytes.fromhex(salt), int(cost), int(blocks), int(lanes))
    return hmac.compare_digest(made, bytes.fromhex(kept)) and stored is not None


def _scrypt(password: str, salt: bytes, log_cost: int, blocks: int, lanes: int) -> bytes:
    text = unicodedata.normalize("NFKC", password).encode()  # keyboards differ in how they write an accent
    return hashlib.scrypt(text, salt=salt, n=1 << log_cost, r=blocks, p=lanes, maxmem=1 << 27, dklen=32)
