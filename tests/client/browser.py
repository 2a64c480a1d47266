# SPDX-License-Identifier: GPL-2.0-or-later
"""A headless chromium that a test drives by the browser's own protocol, through a pipe: it presses keys,
moves the mouse, evaluates expressions, and records what the page says on its console and asks the network
for."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time

KEYS = {"Enter": 13, "Backspace": 8, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38,
        "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35}
SHIFT = 8


def path():
    return shutil.which("chromium")


class Browser:
    """The messages end with a NUL. Raises an error when the browser does not answer within `patience`."""

    def __init__(self, directory, width=1280, height=1000, patience=120):
        self.patience = patience
        self.number = 0
        self.buffer = b""
        self.session = None
        self.page, self.is_loaded = "", False
        self.console = []  # what the page says, and its exceptions
        self.requests = {}  # the addresses that it asks for, by number; in refused those that the policy stopped
        self.refused = []
        out, self.write_end = os.pipe()
        self.read_end, into = os.pipe()
        # The browser reads from 3 and writes to 4: neither may be one of the ends before it is.
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (out, into)]

        def place():
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        with open(f"{directory}/browser.log", "wb") as log:
            self.process = subprocess.Popen(
                [path(), "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
                 f"--user-data-dir={directory}/profile", f"--window-size={width},{height}",
                 "--hide-scrollbars", "about:blank"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, close_fds=False, preexec_fn=place)
        for fd in (out, into, *ends):
            os.close(fd)
        target = self.call("Target.createTarget", url="about:blank", newWindow=True, width=width,
                           height=height)
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        os.close(self.write_end)
        os.close(self.read_end)
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.read_end], [], [], left)[0]:
                raise TimeoutError("chromium does not answer")
            data = os.read(self.read_end, 1 << 20)
            if not data:
                raise EOFError("chromium has ended")
            self.buffer += data
        one, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(one)
        self.note(message.get("method"), message.get("params", {}))
        return message

    def note(self, method, parameters):
        if method == "Page.frameNavigated" and "parentId" not in parameters["frame"]:
            self.page, self.is_loaded = parameters["frame"]["url"], False
        elif method == "Page.loadEventFired":
            self.is_loaded = True
        elif method == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(a.get("value", a)) for a in parameters["args"]))
        elif method == "Runtime.exceptionThrown":
            self.console.append(str(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.console.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests[parameters["requestId"]] = parameters["request"]["url"]
        elif method == "Network.loadingFailed" and parameters.get("blockedReason") == "csp":
            self.refused.append(self.requests.pop(parameters["requestId"]))

    def call(self, method, **parameters):
        """Calls a method of the browser and returns its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data):]
        deadline = time.monotonic() + self.patience
        while True:
            reply = self.receive(deadline)
            if reply.get("id") == self.number:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']}")
                return reply["result"]

    def open(self, address):
        """Loads a page anew, even if it is the one that is shown."""
        if self.page:
            self.call("Page.navigate", url="about:blank")
            self.wait_for_page("about:blank")
        self.console, self.requests, self.refused = [], {}, []
        self.call("Page.navigate", url=address)
        self.wait_for_page(address.split("#")[0])

    def wait_for_page(self, address):
        deadline = time.monotonic() + self.patience
        while self.page != address or not self.is_loaded:
            self.receive(deadline)

    def value(self, expression):
        """Returns the value of an expression; of a promise, what it is fulfilled with."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                           returnByValue=True, userGesture=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression):
        """Waits until an expression is true. Returns its value."""
        deadline = time.monotonic() + self.patience
        while True:
            value = self.value(expression)
            if value:
                return value
            if time.monotonic() > deadline:
                raise TimeoutError(expression)
            time.sleep(0.02)

    def painted(self):
        """Waits until what was asked for so far is on the screen."""
        self.value("new Promise((f) => requestAnimationFrame(() => requestAnimationFrame(f)))")

    def press(self, key, modifiers=0):
        """Presses a key: its name, or a character."""
        words = {"key": key, "modifiers": modifiers, "windowsVirtualKeyCode": KEYS.get(key, ord(key[0]))}
        if key in KEYS:
            text = {"Enter": "\r"}.get(key)
        else:
            text = key
        if text:
            words["text"] = text
        self.call("Input.dispatchKeyEvent", type="keyDown", **words)
        self.call("Input.dispatchKeyEvent", type="keyUp", **words)
        self.painted()

    def mouse(self, kind, x, y, modifiers=0):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1,
                  buttons=0 if kind == "mouseReleased" else 1, modifiers=modifiers)

    def drag(self, start, end, modifiers=0):
        """Presses the button at one point and lets it go at another."""
        self.mouse("mousePressed", *start, modifiers)
        self.mouse("mouseMoved", *((a + b) / 2 for a, b in zip(start, end)), modifiers)
        self.mouse("mouseMoved", *end, modifiers)
        self.mouse("mouseReleased", *end, modifiers)
        self.painted()

    def screenshot(self, name, whole=False):
        words = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            words = {"captureBeyondViewport": True, "clip": {**size, "x": 0, "y": 0, "scale": 1}}
        data = self.call("Page.captureScreenshot", format="png", **words)["data"]
        with open(name, "wb") as file:
            file.write(base64.b64decode(data))
