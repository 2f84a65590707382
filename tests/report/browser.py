"""A headless Chromium, driven through its debugging pipe: JSON messages that end in a NUL, on descriptors 3 and 4."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def find() -> str | None:
    """The browser: that of the environment, or one on PATH."""
    names = (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if name and (found := shutil.which(name))), None)


class Browser:
    """One running Chromium."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._numbers = itertools.count(1)
        self._buffer = b""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method: str) -> None:
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._message())

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = os.read(self._read, 1 << 20)
            assert data, "Chromium ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    @contextmanager
    def page(self, url: str, width: int, *, dark: bool = False) -> Iterator[Page]:
        """A page in a window of this width."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        page.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")
        yield page
        self.call("Target.closeTarget", targetId=target)


@dataclass
class Page:
    """One open page."""

    browser: Browser
    session: str
    _requests: list[str] = field(default_factory=list)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **params)

    def evaluate(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    @property
    def complaints(self) -> list[Any]:
        """What the console shows: errors, warnings, exceptions."""
        wanted = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [event for event in self.browser.events if event.get("method") in wanted]

    @property
    def requests(self) -> list[str]:
        """The addresses that were asked for."""
        sent = (event for event in self.browser.events if event.get("method") == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in sent]

    def press_tab(self) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)

    def screenshot(self, path: Path) -> None:
        height = self.evaluate("document.documentElement.scrollHeight")
        width = self.evaluate("document.documentElement.clientWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def running(program: str, home: Path) -> Iterator[Browser]:
    """Start a browser, and end it with the block."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()

    def descriptors() -> None:
        # The pipe must be 3 and 4, which may be in use here.
        ours = (os.dup(to_read), os.dup(from_write))
        os.dup2(ours[0], 3)
        os.dup2(ours[1], 4)

    process = subprocess.Popen(
        [program, *_FLAGS, f"--user-data-dir={home}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        close_fds=False,
        preexec_fn=descriptors,
    )
    os.close(to_read)
    os.close(from_write)
    try:
        browser = Browser(to_write, from_read)
        yield browser
        browser.call("Browser.close")
        process.wait(timeout=30)
    finally:
        process.kill()
        process.wait()
        os.close(to_write)
        os.close(from_read)
