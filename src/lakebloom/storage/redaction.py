"""What an object store said, without the secrets it was configured with.

obstore hides the URLs of Azure requests, but a value it cannot parse is printed as it is, and stores may echo what they
were sent. Every option is taken for a secret unless it is known not to be one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["cause_of", "redacted"]

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
        "skip_signature",
        "timeout",
        "use_emulator",
        "virtual_hosted_style_request",
    }
)
_VENDORS = ("aws_", "azure_storage_", "azure_", "google_")
# Anything shorter is no secret, and starring it out would leave nothing of the text.
_SHORTEST_SECRET = 4
_LONGEST_TEXT = 400


def redacted(error: BaseException, options: Mapping[str, str]) -> str:
    """The first paragraph of an error's text, on one line, secrets starred out.

    >>> redacted(ValueError("bad token s3cr3t"), {"token": "s3cr3t"})
    'ValueError: bad token ***'
    """
    # obstore adds a dump of its own structures that helps no reader.
    text = " ".join(str(error).partition("\n\nDebug source")[0].split())
    for secret in _secrets(options):
        text = text.replace(secret, "***")
    shortened = text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
    return f"{type(error).__name__}: {shortened}"


def cause_of(error: BaseException, options: Mapping[str, str]) -> BaseException | None:
    """The error itself, to be shown as the cause of a translated one, unless it would show a secret."""
    text = str(error)
    return None if any(secret in text for secret in _secrets(options)) else error


def _secrets(options: Mapping[str, str]) -> Iterator[str]:
    # Longest first, so that a secret that contains another one leaves no rest.
    for key, value in sorted(options.items(), key=lambda item: -len(item[1])):
        if len(value) >= _SHORTEST_SECRET and _bare(key) not in _PUBLIC_KEYS:
            yield value
            yield quote(value, safe="")


def _bare(key: str) -> str:
    name = key.lower()
    for vendor in _VENDORS:
        if name.startswith(vendor):
            return name.removeprefix(vendor)
    return name
