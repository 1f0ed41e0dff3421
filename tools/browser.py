"""Drives headless Chromium by the DevTools protocol, with the standard library alone.

    with Browser.start(width=1280, height=900) as page:
        page.open("file:///tmp/page.html")
        page.evaluate("document.title")

Console errors and uncaught exceptions are collected in `page.problems`.
"""
import base64
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request


class Missing(Exception):
    """Chromium is not installed, or does not start."""


class Socket:
    """Client of a WebSocket (RFC 6455), for text messages."""

    def __init__(self, url, timeout=120):
        host, path = url.removeprefix("ws://").split("/", 1)
        name, port = host.rsplit(":", 1)
        self.connection = socket.create_connection((name, int(port)), timeout)
        key = base64.b64encode(os.urandom(16)).decode()
        self.connection.sendall(
            f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += self.connection.recv(1)
        if b" 101 " not in answer.split(b"\r\n")[0]:
            raise Missing(f"the browser answers {answer[:80]!r}")

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        head = bytes([0x81])
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 1 << 16:
            head += bytes([0x80 | 126]) + struct.pack(">H", size)
        else:
            head += bytes([0x80 | 127]) + struct.pack(">Q", size)
        self.connection.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def receive(self):
        message = b""
        while True:
            first, second = self._read(2)
            size = second & 0x7F
            if size == 126:
                size = struct.unpack(">H", self._read(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self._read(8))[0]
            data = self._read(size)
            if first & 0x0F in (0x0, 0x1):  # text, or its continuation
                message += data
                if first & 0x80:
                    return message.decode()

    def _read(self, size):
        data = b""
        while len(data) < size:
            part = self.connection.recv(size - len(data))
            if not part:
                raise ConnectionError("the browser has closed the connection")
            data += part
        return data


class Browser:
    def __init__(self, process, folder, address):
        self.process, self.folder, self.problems, self.number = process, folder, [], 0
        self.socket = Socket(address)
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    @classmethod
    def start(cls, width=1280, height=900):
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if program is None:
            raise Missing("chromium is not installed")
        folder = tempfile.mkdtemp(prefix="tessera-browser-")
        process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--no-first-run",
             f"--user-data-dir={folder}", f"--window-size={width},{height}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port = pathlib.Path(folder, "DevToolsActivePort")
        for _ in range(300):
            if port.exists() and port.read_text().count("\n"):
                break
            if process.poll() is not None:
                break
            time.sleep(0.1)
        else:
            process.kill()
        if not port.exists():
            process.kill()
            shutil.rmtree(folder, ignore_errors=True)
            raise Missing("chromium does not start")
        url = f"http://127.0.0.1:{port.read_text().split()[0]}/json/list"
        for _ in range(100):
            pages = [one for one in json.load(urllib.request.urlopen(url)) if one["type"] == "page"]
            if pages:
                break
            time.sleep(0.1)
        browser = cls(process, folder, pages[0]["webSocketDebuggerUrl"])
        browser.resize(width, height)
        return browser

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            self._note(message)
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def _note(self, message):
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
            self.problems.append(str(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.problems.append(parameters["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.problems.append("a dialog: " + parameters["message"])

    def open(self, url, script=True):
        """Opens a page and waits for it; with `script`, until the script of a report has shown something."""
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'" + (" && document.body.dataset.tab !== undefined" if script else ""))

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression, seconds=120):
        end = time.monotonic() + seconds
        while not self.evaluate(expression):
            if time.monotonic() > end:
                raise TimeoutError(expression)
            time.sleep(0.02)

    def resize(self, width, height, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", buttons=0, clickCount=1)

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
