"""Texts of an object store's errors, without the secrets of its configuration.

obstore hides the URLs of Azure requests, but prints a value that it cannot parse, and stores may repeat what they
were sent. Every option counts as a secret unless it is known to be public; inside public URLs, passwords and queries
are secrets. ``display.secrets`` removes known secrets from all texts of lakebloom; this module handles what only
answers of stores contain.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from lakebloom.display.secrets import remember, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["StorageOptions", "cause_of", "redacted", "remember_secrets", "secrets_in_url", "without_userinfo"]

_PUBLIC_KEYS = frozenset(
    {
        "account_name",
        "allow_http",
        "allow_invalid_certificates",
        "conditional_put",
        "connect_timeout",
        "default_region",
        "disable_bulk_delete",
        "endpoint",
        "endpoint_url",
        "max_retries",
        "read_timeout",
        "region",
        "retry_timeout",
        "skip_signature",
        "timeout",
        "use_emulator",
        "virtual_hosted_style_request",
    }
)
_VENDORS = ("aws_", "azure_storage_", "azure_", "google_")
# Patterns as text are compiled when they are first used: local tables need none.
_SECRET_VARIABLE = "(?i)(AWS|AZURE|GOOGLE)_.*(KEY|SECRET|TOKEN|PASSWORD|SAS|SIGNATURE|CREDENTIAL)"
_LONGEST_TEXT = 400
# Elements and headers in which a store repeats credentials. <Key> is the name of an object.
_ECHOES = (
    (r"(?i)<((?!Key>)[\w.-]*(?:Token|Secret|Sign|AccessKey|Credential)[\w.-]*)>[^<]+", r"<\1>***"),
    (r"(?i)(\bauthorization[\"']?\s*[:=]\s*[\"']?)(?:[\w-]+\s+)?\S+", r"\1***"),
    (r"(?i)(\b(?:x-amz-[\w-]+|[\w-]*signature|sig|[\w-]*token)[\"']?\s*[:=]\s*)\S+", r"\1***"),
)


class StorageOptions(dict[str, str]):
    """Options of a store. Their text shows no secret value, because tools print the variables of a traceback."""

    def __repr__(self) -> str:
        shown = {key: without_secrets(value) if _bare(key) in _PUBLIC_KEYS else "***" for key, value in self.items()}
        return repr(shown)

    __str__ = __repr__


def remember_secrets(options: Mapping[str, str]) -> None:
    """From now on, replace the secrets among these options and in the environment by asterisks."""
    remember(_secrets(options))
    remember(value for name, value in os.environ.items() if re.match(_SECRET_VARIABLE, name))


def redacted(error: BaseException, options: Mapping[str, str]) -> str:
    """Return the first paragraph of an error's text on one line, with asterisks for secrets.

    >>> redacted(ValueError("bad token s3cr3t"), {"token": "s3cr3t"})
    'ValueError: bad token ***'
    """
    remember_secrets(options)
    # obstore adds a dump of its internal structures, which helps nobody.
    text = " ".join(_cleaned(str(error).partition("\n\nDebug source")[0]).split())
    shortened = text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
    return f"{type(error).__name__}: {shortened}"


def cause_of(error: BaseException, options: Mapping[str, str]) -> BaseException | None:
    """Return the error as the cause of a translated one; None if it, or a cause of it, shows a secret."""
    remember_secrets(options)
    shown: BaseException | None = error
    while shown is not None:
        texts = (str(shown), repr(shown), *getattr(shown, "__notes__", ()))
        if any(_cleaned(text) != text for text in texts):
            return None
        shown = shown.__cause__ or shown.__context__
    return error


def without_userinfo(url: str) -> str:
    """Return a URL without its user and password."""
    return without_secrets(url)


def _cleaned(text: str) -> str:
    text = without_secrets(text)
    for echo, starred in _ECHOES:
        text = re.sub(echo, starred, text)
    return text


def _secrets(options: Mapping[str, str]) -> Iterator[str]:
    for key, value in options.items():
        if _bare(key) not in _PUBLIC_KEYS:
            yield value
        if "://" in value:
            yield from secrets_in_url(value)


def secrets_in_url(url: str) -> Iterator[str]:
    """Yield the password and the values of the query of a URL."""
    rest = url.partition("://")[2]
    user_info, at, _ = rest.rpartition("@")
    if at and ":" in user_info:
        password = user_info.partition(":")[2]
        yield from (user_info, password, unquote(password))
    query = rest.partition("?")[2]
    if "=" in query:
        yield query
        yield from (part.partition("=")[2] for part in query.split("&") if len(part.partition("=")[2]) >= 8)


def _bare(key: str) -> str:
    name = key.lower()
    for vendor in _VENDORS:
        if name.startswith(vendor):
            return name.removeprefix(vendor)
    return name
