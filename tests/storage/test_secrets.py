"""A secret that lakebloom is given leaves it in no text: of errors, their causes, reprs, logs and the command line.

The store is a server that refuses everything and repeats what it was sent, headers and all.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from html import escape
from io import StringIO
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakebloom.parquet
from lakebloom import Lakebloom, LakebloomError, col
from lakebloom.cli.main import main
from lakebloom.display.secrets import without_secrets
from lakebloom.storage.objects.redaction import StorageOptions
from tests.examples import most
from tests.storage.http_server import Handler, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORDS = st.text("abcdefXYZ0123456789-_.~", min_size=6, max_size=30).map(lambda text: f"S3cr3t{text}Z")
ANY = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=6, max_size=30).map(
    lambda text: f"S3cr3t{text}Z"
)


@pytest.fixture(scope="module")
def echo() -> Iterator[str]:
    """The endpoint of a store that repeats every request in its refusal, in several ways."""

    class Echo(Handler):
        def answer(self) -> None:
            self.body()
            headers = "".join(
                f"<{escape(name)}>{escape(value)}</{escape(name)}>" for name, value in self.headers.items()
            )
            text = f"<Error><Code>InvalidToken</Code><Message>{self.path} {dict(self.headers)}</Message>{headers}"
            self.reply(400, [], (text + json.dumps(dict(self.headers)) + str(self.headers) + "</Error>").encode())

    with serving(Echo) as address:
        yield address


def options_for(host: str, **more: str) -> dict[str, str]:
    given = {"endpoint": f"http://{host}", "region": "us-east-1", "allow_http": "true", "max_retries": "0"}
    return given | {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "x" * 30} | more


def azure(host: str, **more: str) -> dict[str, str]:
    given = {"endpoint": f"http://{host}", "account_name": "account", "account_key": "QUJDRA=="}
    return given | {"allow_http": "true", "max_retries": "0"} | more


def asked(location: str, options: dict[str, str]) -> Callable[[], object]:
    def ask() -> None:
        lake = Lakebloom(location=location, options=options)
        sys.stdout.write(f"{lake!r} {lake} {lake.catalog.options!r} {lake.catalog.options}")
        with pytest.raises(LakebloomError):
            lake.index("i")
        lake.lookup("i", col("k") == 1)

    return ask


# Where a user may put a secret, on purpose or by mistake: the call, and the environment it is made in.
OPTIONS: dict[str, Callable[[str, str], dict[str, str]]] = {
    "key": lambda host, secret: options_for(host, secret_access_key=secret),
    "key id": lambda host, secret: options_for(host, access_key_id=secret),
    "token": lambda host, secret: options_for(host, aws_session_token=secret),
    "misspelt": lambda host, secret: options_for(host, sekret_key=secret),
}
URLS: dict[str, Callable[[str, str], tuple[str, dict[str, str]]]] = {
    "endpoint": lambda host, secret: ("s3://bucket/x", options_for(host, endpoint=f"http://user:{secret}@{host}")),
    "endpoint's query": lambda host, secret: (
        "s3://bucket/x",
        options_for(host, endpoint=f"http://{host}?sig={secret}"),
    ),
    "proxy": lambda host, secret: ("s3://bucket/x", options_for(host, proxy_url=f"http://user:{secret}@{host}")),
    "location": lambda host, secret: (f"s3://AKIA:{secret}@bucket/x", options_for(host)),
    "location, with a slash": lambda host, secret: (f"s3://AKIA:{secret}/tail@bucket/x", options_for(host)),
    "location, a slash, digits": lambda host, secret: (f"s3://AKIA:12/{secret}@bucket/x", options_for(host)),
    "location, no bucket": lambda host, secret: (f"s3://AKIA:{secret}/x", options_for(host)),
    "location, one slash": lambda host, secret: (f"s3:AKIA:{secret}@bucket/x", options_for(host)),
    "signature": lambda host, secret: (f"az://cont/x?sv=1&sig={secret}", azure(host)),
    "token in the location": lambda host, secret: (f"s3://bucket/x?X-Amz-Security-Token={secret}", options_for(host)),
    "https": lambda host, secret: (f"https://user:{secret}@{host}/x", {}),
}


def texts_of(call: Callable[[], object]) -> str:
    """Everything that anybody could read of a call."""
    printed = StringIO()
    handler = logging.StreamHandler(printed)
    logging.getLogger().addHandler(handler)
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            try:
                call()
            except Exception as error:
                shown: BaseException | None = error
                while shown is not None:
                    printed.write(f"{shown!s} {shown!r} {vars(shown)}\n")
                    hidden = None if shown.__suppress_context__ else shown.__context__
                    shown = shown.__cause__ or hidden
                printed.write("".join(traceback.format_exception(error)))
    finally:
        logging.getLogger().removeHandler(handler)
    return printed.getvalue()


LAW = settings(max_examples=most(6), suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.slow
@pytest.mark.parametrize("place", OPTIONS)
@LAW
@given(secret=ANY)
def test_no_option_is_shown(echo: str, place: str, secret: str) -> None:
    text = texts_of(asked("s3://bucket/x", OPTIONS[place](echo, secret)))
    assert text
    assert secret not in text


@pytest.mark.slow
@pytest.mark.parametrize("place", URLS)
@LAW
@given(secret=WORDS)
def test_no_password_or_signature_in_a_url_is_shown(echo: str, place: str, secret: str) -> None:
    location, options = URLS[place](echo, secret)
    text = texts_of(asked(location, options))
    assert text
    assert secret not in text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["AWS_SESSION_TOKEN", "AWS_SECRET_ACCESS_KEY", "aws_session_token"])
@LAW
@given(secret=WORDS)
def test_nothing_secret_of_the_environment_is_shown(echo: str, name: str, secret: str) -> None:
    given = {"AWS_ENDPOINT_URL": f"http://{echo}", "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
    keys = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "x" * 30}
    with mock.patch.dict(os.environ, given | keys | {name: secret}):
        text = texts_of(asked("s3://bucket/x", {"max_retries": "0"}))
        for arguments in (["list"], ["list", "--debug"], ["history", "i", "--output", "json"]):
            text += texts_of(lambda arguments=arguments: main([*arguments, "--location", "s3://bucket/x"]))  # type: ignore[misc]
    assert text
    assert secret not in text


@pytest.mark.slow
@LAW
@given(secret=WORDS)
def test_the_command_line_shows_no_password_of_a_location(echo: str, secret: str) -> None:
    for location in (f"s3://AKIA:{secret}/t@bucket/x", f"az://cont/x?sig={secret}", f"https://u:{secret}@{echo}/x"):
        for flags in ([], ["--debug"], ["--output", "json"]):
            text = texts_of(lambda flags=flags, location=location: main(["list", *flags, "--location", location]))  # type: ignore[misc]
            assert text
            assert secret not in text


@LAW
@given(secret=WORDS)
def test_a_presigned_url_of_a_file_is_shown_without_its_signature(echo: str, secret: str) -> None:
    for url in (f"https://{echo}/a.parquet?X-Amz-Signature={secret}", f"https://u:{secret}@{echo}/a.parquet"):
        text = texts_of(lambda url=url: list(lakebloom.parquet.filters(url)))  # type: ignore[misc]
        assert text
        assert secret not in text


def test_options_print_their_names_only() -> None:
    options = StorageOptions({"region": "eu", "token": "abcdefgh", "endpoint": "http://u:pw12@h:1/?sig=1"})
    assert repr(options) == str(options) == "{'region': 'eu', 'token': '***', 'endpoint': 'http://***@h:1/?***'}"
    assert options["token"] == "abcdefgh"


@pytest.mark.parametrize(
    "text",
    ["could not read hdfs://nn:8020/a@b", "s3://lake/part-??.parquet", "file:///a b?c", "no URL?x=1 user:x@y"],
)
def test_what_holds_no_secret_stays_as_it_is(text: str) -> None:
    assert without_secrets(text) == text
