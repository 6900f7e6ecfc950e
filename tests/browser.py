"""A headless Chromium that is driven by WebDriver, the W3C's protocol: no package of Python is needed."""
import base64
import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request


def missing():
    """Why there is no browser; empty: there is one."""
    lacking = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"no {' and no '.join(lacking)} (Debian: chromium, chromium-driver)" if lacking else ""


def axe():
    """The script of axe-core, which ci/test.sh installs; empty: it is not there."""
    path = os.environ.get("TRAINWRECK_AXE", "")
    if not os.path.isfile(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


class Browser:
    def __init__(self, folder, width=1280, height=900, dark=False, javascript=True):
        self.process = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True, cwd=folder,
                                        env={"HOME": folder, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"})
        port = next(line.split()[-1].rstrip(".") for line in self.process.stdout if "successfully on port" in line)
        self.root = f"http://127.0.0.1:{port}/session"
        options = {"binary": shutil.which("chromium"),
                   "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                            f"--user-data-dir={folder}/profile", f"--window-size={width},{height}"]
                   + (["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else [])}
        if not javascript:
            options["prefs"] = {"profile.managed_default_content_settings.javascript": 2}
        wanted = {"goog:chromeOptions": options, "timeouts": {"script": 100_000},  # a machine may be busy
                  "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        self.root += "/" + self.call("POST", "", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from error

    def open(self, path, fragment=""):
        self.call("POST", "/url", {"url": f"file://{path}{fragment}"})

    def run(self, script, *arguments):
        """The value that the function body `script` returns."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script):
        """Until `script` returns what is true."""
        for _ in range(600):
            found = self.run(script)
            if found:
                return found
            time.sleep(0.05)
        raise RuntimeError(f"never true: {script}")

    def type_keys(self, keys):
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def move_to(self, x, y):
        move = {"type": "pointerMove", "x": int(x), "y": int(y), "origin": "viewport"}
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]})

    def errors(self):
        """What the console says, warnings among it."""
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"})]

    def requests(self):
        """The addresses that were asked for."""
        messages = [json.loads(entry["message"])["message"] for entry in self.call("POST", "/se/log", {"type": "performance"})]
        return [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]

    def nameless(self):
        """Visible controls and pictures that a screen reader has no name for."""
        return self.run(
            "return [...document.querySelectorAll('button, select, input, a, svg[role=img], [role=img]')]"
            ".filter((e) => e.checkVisibility() && !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.[0]?.textContent.trim()))"
            ".map((e) => e.outerHTML.slice(0, 200))")

    def breaches(self):
        """The rules of accessibility that axe-core finds broken: each with its words and the first places."""
        self.run(axe() + "; window.axe = axe")
        return self.call("POST", "/execute/async", {"script": """
            const done = arguments[0];
            axe.run(document, {resultTypes: ["violations"]}).then(
              (result) => done(result.violations.map((rule) => [rule.id, rule.help, rule.nodes.slice(0, 3).map((n) => n.html.slice(0, 200))])),
              (error) => done([["axe", String(error), []]]))""", "args": []})

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", "/screenshot")))

    def close(self):
        try:
            self.call("DELETE", "")
        finally:
            self.process.terminate()
            self.process.wait()
            self.process.stdout.close()
