"""Removes secrets from texts: known secrets, and those in URLs.

Every text of a ``LakebloomError`` goes through ``without_secrets``. Code that receives a secret calls ``remember``; all
forms in which stores and libraries write the secret are then replaced by stars.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lakebloom.locks import new_lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["remember", "without_secrets"]

_STARS = "***"
# Shorter texts are not treated as secrets: replacing them would make texts unreadable.
_SHORTEST = 4
# A process that gets new tokens for years forgets the oldest.
_MOST_FORMS = 20_000

# user:password@ after "://", with slashes in the password; host:8020/a@b is no password.
_USER_INFO = r"(://)[^\s/@:]*:(?!\d{1,5}/)\S*@"
# The query of a URL: a signature, a token, an expiry. A pattern such as part-??.parquet has no "=".
_QUERY = r"(://[^\s?]*\?)[^\s=]*=\S*"

_lock = new_lock()
_forms: dict[str, None] = {}
_longest_first: tuple[str, ...] = ()


def remember(secrets: Iterable[str]) -> None:
    """Replace these texts by stars in all later output."""
    global _longest_first
    new = {form for secret in secrets if secret not in _forms for form in _written(secret)}
    if not new:
        return
    with _lock:
        _forms.update(dict.fromkeys(sorted(new)))
        for oldest in list(_forms)[: max(0, len(_forms) - _MOST_FORMS)]:
            del _forms[oldest]
        # The longest first, because a secret may contain another.
        _longest_first = tuple(sorted(_forms, key=len, reverse=True))


def without_secrets(text: str) -> str:
    """Return a text with stars instead of known secrets, passwords in URLs and queries of URLs.

    >>> without_secrets("could not read https://user:pa/ss@host/a.parquet?X-Amz-Signature=abc")
    'could not read https://***@host/a.parquet?***'
    """
    for secret in _longest_first:
        if secret in text:
            text = text.replace(secret, _STARS)
    if "://" not in text:
        return text
    return re.sub(_QUERY, rf"\1{_STARS}", re.sub(_USER_INFO, rf"\1{_STARS}@", text))


def _written(secret: str) -> Iterator[str]:
    """Yield a secret, and its forms in JSON, XML, URLs, Python and headers."""
    from base64 import b64encode, urlsafe_b64encode
    from html import escape
    from json import dumps
    from urllib.parse import quote, quote_plus

    raw = secret.encode("utf-8", "surrogateescape")
    forms = [
        secret,
        secret.strip(),
        " ".join(secret.split()),
        quote(raw, safe=""),
        quote(raw),
        quote_plus(raw),
        escape(secret),
        dumps(secret)[1:-1],
        dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        b64encode(raw).decode("ascii"),
        urlsafe_b64encode(raw).decode("ascii"),
    ]
    # A key of several lines may be quoted line by line.
    lines = re.split(r"\s+|\\n|\"", secret)
    yield from (form for form in forms if len(form) >= _SHORTEST)
    yield from (line for line in lines if len(line) >= 16)
