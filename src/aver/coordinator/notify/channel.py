"""Tell the desktop, a mailbox, Slack or a webhook of one verdict.

A program of its own that gets the document on its stdin, as a command of the user does, so that it is limited in time,
tried again and logged in the same way. Its receiver is in `AVER_NOTIFY_TO`: other users can read no environment.
Exit status 0 is: delivered. What it writes has no address in it, which may be secret.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

VARIABLE = "AVER_NOTIFY_TO"
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
SENDMAIL_FOLDERS = "/usr/sbin:/usr/lib:/usr/local/sbin"


class Undelivered(Exception):
    """Why it could not be told, without the address."""


def main() -> int:
    kind, _, address = os.environ.pop(VARIABLE, "").partition(":")
    document = json.load(sys.stdin)
    try:
        match kind:
            case "desktop":
                _desktop(document)
            case "mail":
                _mail(address, document)
            case "slack":
                _post(address, {"text": f"*{title(document)}*\n{details(document)}"})
            case "webhook":
                _post(address, document)
            case _:
                raise Undelivered(f"{kind!r} is not a receiver")
    except Undelivered as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def title(document: Mapping[str, Any]) -> str:
    """`aver: job 7 (train) FAILED`."""
    what = "run" if document["job"] is None else "job"
    facts = document[what]
    return f"aver: {what} {facts['id']} ({facts['name']}) {facts['state']}"


def details(document: Mapping[str, Any]) -> str:
    """The sentence of the verdict, where it was, and what to type next."""
    facts = document["job"] or document["run"]
    return f"{document['sentence']}\nOn {document['host']}: aver why {facts['id']}"


def _desktop(document: Mapping[str, Any]) -> None:
    words = ["--app-name=aver", "--", title(document), str(document["sentence"])]
    _call("notify-send", os.environ.get("PATH", os.defpath), words, b"")


def _mail(address: str, document: Mapping[str, Any]) -> None:
    from email.message import EmailMessage
    from email.policy import SMTP

    message = EmailMessage(policy=SMTP.clone(linesep="\n"))
    message["To"] = address
    message["Subject"] = " ".join(title(document).split())
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(details(document) + "\n")
    places = f"{os.environ.get('PATH', os.defpath)}:{SENDMAIL_FOLDERS}"
    _call("sendmail", places, ["-i", "-t"], message.as_bytes())


def _call(name: str, places: str, words: list[str], given: bytes) -> None:
    program = shutil.which(name, path=places)
    if program is None:
        raise Undelivered(f"{name} is not installed")
    done = subprocess.run(
        [program, *words], input=given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Undelivered(f"{name} ended with {done.returncode}" + (f": {said[-1]}" if said else ""))


def _post(address: str, document: Mapping[str, Any]) -> None:
    """Deliver it if the server answers with success; a redirection is none, for it would become a GET."""
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class Stay(HTTPRedirectHandler):
        def redirect_request(self, *_: Any, **__: Any) -> None:
            return None

    head = {"Content-Type": "application/json", "User-Agent": "aver"}
    try:
        request = Request(address, json.dumps(document).encode(), head)
        with build_opener(Stay).open(request) as answer:
            answer.read(1)
    except HTTPError as error:
        raise Undelivered(f"the server answered {error.code} {error.reason}") from None
    except URLError as error:
        raise Undelivered(f"the server can't be reached: {error.reason}") from None
    except (HTTPException, OSError, ValueError) as error:
        raise Undelivered(f"the server can't be reached: {type(error).__name__}") from None


if __name__ == "__main__":
    sys.exit(main())
