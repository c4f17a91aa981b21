"""A Hub on the loopback interface: enough of the protocol for the real clients to publish to it and to load from it.

Repositories live in memory; every commit is kept, so any of them can be asked for as a revision. Files that are not
text, or large, go the way of large files (git LFS; xet is not spoken, clients need HF_HUB_DISABLE_XET=1). What no
client asked for so far is answered with 501 and noted in `LoopbackHub.unknown`.
"""

import base64
import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

WRITER, READER = "hf_writer", "hf_reader"  # tokens of the organisation ctxsim
LARGE = 10_000  # bytes
LICENCES = ("apache-2.0", "mit", "cc-by-sa-4.0", "other")
PREFIXES = {"models": "", "datasets": "datasets/", "spaces": "spaces/"}


class Blob(NamedTuple):
    content: bytes
    is_large: bool

    @property
    def oid(self) -> str:
        """As the client names a version of a file."""
        if self.is_large:
            return hashlib.sha256(self.content).hexdigest()
        return hashlib.sha1(b"blob %d\0" % len(self.content) + self.content).hexdigest()

    def describe(self, path: str) -> dict[str, Any]:
        described = {"type": "file", "path": path, "size": len(self.content), "oid": self.oid[:40]}
        large = {"oid": self.oid, "size": len(self.content), "pointerSize": 130}
        return described | ({"lfs": large} if self.is_large else {})


@dataclass
class Repository:
    private: bool
    commits: dict[str, dict[str, Blob]] = field(default_factory=dict)  # the last one is main

    def __post_init__(self) -> None:
        self.commit({".gitattributes": Blob(b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n", False)})

    def commit(self, files: dict[str, Blob]) -> str:
        listing = "".join(f"{path} {blob.oid}\n" for path, blob in sorted(files.items()))
        sha = hashlib.sha1(f"{len(self.commits)}\n{listing}".encode()).hexdigest()
        self.commits[sha] = files
        return sha

    @property
    def main(self) -> str:
        return list(self.commits)[-1]

    @property
    def files(self) -> dict[str, bytes]:
        """Of main, but for the Hub's own."""
        return {path: b.content for path, b in self.commits[self.main].items() if path != ".gitattributes"}


class Answer(Exception):
    def __init__(self, status: int, body: Any = b"", **headers: str) -> None:
        self.status, self.headers = status, {name.replace("_", "-"): value for name, value in headers.items()}
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()


class LoopbackHub:
    """A context manager; `endpoint` is what HF_ENDPOINT should be."""

    def __init__(self) -> None:
        self.repositories: dict[tuple[str, str], Repository] = {}
        self.objects: dict[str, bytes] = {}  # large files, by digest
        self.unknown: list[str] = []
        self.requests: list[str] = []
        self.cut_uploads = 0  # so many uploads break off in the middle
        self.refused_commits = 0  # so many commits are answered with "payment required"
        self.hold_uploads: threading.Event | None = None  # an upload waits for it in the middle, and then breaks off
        self.upload_begun = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": self}))
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        # Large files are elsewhere, as they are for the Hub: within one host clients follow a redirection unasked,
        # and would not see what it says of the file.
        self.storage = f"http://localhost:{self._server.server_port}"

    def __enter__(self) -> "LoopbackHub":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def repository(self, repo_id: str, kind: str = "models") -> Repository:
        return self.repositories[kind, repo_id]


class _Handler(BaseHTTPRequestHandler):
    hub: LoopbackHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: Any) -> None:
        pass

    def _serve(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append(f"{self.command} {path}")
        try:
            for method, pattern, answer in _ROUTES:
                if self.command in method and (match := re.fullmatch(pattern, path)):
                    answer(self, **match.groupdict())
            self.hub.unknown.append(f"{self.command} {self.path}")
            raise Answer(501)
        except Answer as given:
            with contextlib.suppress(ConnectionError):  # a client that was killed hears nothing
                self._send(given)
        except ConnectionError:
            self.close_connection = True

    do_GET = do_HEAD = do_POST = do_PUT = _serve

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in ({"Content-Length": str(len(answer.body))} | answer.headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _token(self) -> str | None:
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None

    def _check_writer(self) -> None:
        if self._token() not in (WRITER, READER):
            raise Answer(401, {"error": "Invalid credentials"})
        if self._token() != WRITER:
            raise Answer(403, {"error": "You don't have the rights to write here"})

    def _find(self, kind: str, repo_id: str) -> Repository:
        found = self.hub.repositories.get((kind, repo_id))
        if found is None or (found.private and self._token() not in (WRITER, READER)):
            # A private repository is not to be told from none.
            raise Answer(401 if self._token() is None else 404, {"error": "not found"}, X_Error_Code="RepoNotFound")
        return found

    def _revision(self, found: Repository, revision: str | None) -> str:
        sha = found.main if revision in (None, "main") else str(revision)
        if sha not in found.commits:
            raise Answer(404, {"error": "no such revision"}, X_Error_Code="RevisionNotFound")
        return sha

    def no_registry(self) -> None:
        raise Answer(404)

    def not_a_hub(self) -> None:
        raise Answer(200, b"<html>Please log in</html>")

    def who_am_i(self) -> None:
        if self._token() not in (WRITER, READER):
            raise Answer(401, {"error": "Invalid credentials"})
        raise Answer(200, {"name": "somebody", "type": "user", "orgs": [{"name": "ctxsim"}]})

    def create(self) -> None:
        wanted = json.loads(self._body())
        self._check_writer()
        kind = wanted.get("type", "model") + "s"
        repo_id = f"{wanted['organization']}/{wanted['name']}"
        url = f"{self.hub.endpoint}/{PREFIXES[kind]}{repo_id}"
        if (kind, repo_id) in self.hub.repositories:
            raise Answer(409, {"error": "You already created this repo", "url": url})
        private = wanted.get("visibility") == "private"
        self.hub.repositories[kind, repo_id] = Repository(private)
        raise Answer(200, {"url": url, "name": repo_id, "id": repo_id})

    def info(self, kind: str, repo_id: str, revision: str | None = None) -> None:
        found = self._find(kind, repo_id)
        sha = self._revision(found, revision)
        siblings = [{"rfilename": path} for path in found.commits[sha]]
        raise Answer(200, {"id": repo_id, "sha": sha, "private": found.private, "siblings": siblings, "tags": []})

    def tree(self, kind: str, repo_id: str, revision: str, folder: str | None = None) -> None:
        found = self._find(kind, repo_id)
        files = found.commits[self._revision(found, revision)]
        within = f"{folder}/" if folder else ""
        rows = [blob.describe(path) for path, blob in files.items() if path.startswith(within)]
        if folder and not rows:
            raise Answer(404, {"error": "no such folder"}, X_Error_Code="EntryNotFound")
        if "recursive=true" not in self.path.lower():
            inside = [row["path"].removeprefix(within) for row in rows]
            rows = [row for row, rest in zip(rows, inside, strict=True) if "/" not in rest]
            folders = sorted({rest.split("/")[0] for rest in inside if "/" in rest})
            rows += [{"type": "directory", "path": within + name, "oid": "0" * 40} for name in folders]
        raise Answer(200, rows, Content_Type="application/json")

    def paths_info(self, kind: str, repo_id: str, revision: str) -> None:
        wanted = json.loads(self._body())["paths"]
        found = self._find(kind, repo_id)
        files = found.commits[self._revision(found, revision)]
        rows = [files[path].describe(path) for path in wanted if path in files]
        folders = [name for name in wanted if any(path.startswith(f"{name}/") for path in files)]
        raise Answer(200, rows + [{"type": "directory", "path": name, "oid": "0" * 40} for name in folders])

    def validate_card(self) -> None:
        """Of all that the Hub checks, the licence."""
        head = json.loads(self._body())["content"].split("\n---")[0]
        if "\nlicense: " in head and not re.search(rf"^license: ({'|'.join(LICENCES)})$", head, re.M):
            raise Answer(400, b'"license" must be one of those known')
        raise Answer(200, {"errors": [], "warnings": []})

    def preupload(self, kind: str, repo_id: str, revision: str) -> None:
        wanted = json.loads(self._body())["files"]
        self._check_writer()
        found = self._find(kind, repo_id)
        files = found.commits[self._revision(found, revision)]
        answers = []
        for file in wanted:
            is_large = file["size"] > LARGE or b"\0" in base64.b64decode(file["sample"])
            oid = {"oid": files[file["path"]].oid} if file["path"] in files else {}
            mode = "lfs" if is_large else "regular"
            answers.append({"path": file["path"], "uploadMode": mode, "shouldIgnore": False} | oid)
        raise Answer(200, {"files": answers})

    def batch(self, prefix: str | None, repo_id: str) -> None:
        wanted = json.loads(self._body())["objects"]
        self._check_writer()
        self._find((prefix or "models/").rstrip("/"), repo_id)
        answers = []
        for large in wanted:
            upload = {"upload": {"href": f"{self.hub.storage}/objects/{large['oid']}"}}
            answers.append(large | ({} if large["oid"] in self.hub.objects else {"actions": upload}))
        raise Answer(200, {"transfer": "basic", "objects": answers})

    def upload(self, oid: str) -> None:
        first = self.rfile.read(int(self.headers["Content-Length"]) // 2)
        self.hub.upload_begun.set()
        if self.hub.hold_uploads is not None:
            self.hub.hold_uploads.wait(60)
            raise ConnectionAbortedError
        if self.hub.cut_uploads:
            self.hub.cut_uploads -= 1
            raise ConnectionAbortedError
        content = first + self.rfile.read(int(self.headers["Content-Length"]) - len(first))
        if hashlib.sha256(content).hexdigest() != oid:
            raise Answer(400, {"error": "the digest is another"})
        self.hub.objects[oid] = content
        raise Answer(200)

    def commit(self, kind: str, repo_id: str, revision: str) -> None:
        lines = [json.loads(line) for line in self._body().splitlines()]
        self._check_writer()
        found = self._find(kind, repo_id)
        if self.hub.refused_commits:
            self.hub.refused_commits -= 1
            raise Answer(402, {"error": "Private repository storage limit reached"})
        if lines[0]["value"].get("parentCommit", found.main) != found.main:
            raise Answer(412, {"error": "A commit has happened since. Please refresh and try again."})
        files = dict(found.commits[found.main])
        for path, blob in self._changes(lines[1:]):
            files.pop(path, None)
            if blob is not None:
                files[path] = blob
        sha = found.commit(files)
        url = f"{self.hub.endpoint}/{PREFIXES[kind]}{repo_id}/commit/{sha}"
        raise Answer(200, {"success": True, "commitOid": sha, "commitUrl": url})

    def _changes(self, lines: list[dict[str, Any]]) -> Iterator[tuple[str, Blob | None]]:
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                yield value["path"], Blob(base64.b64decode(value["content"]), False)
            elif line["key"] == "lfsFile":
                if value["oid"] not in self.hub.objects:
                    raise Answer(400, {"error": f"{value['path']} was not uploaded"})
                yield value["path"], Blob(self.hub.objects[value["oid"]], True)
            else:
                yield value["path"], None

    def resolve(self, prefix: str | None, repo_id: str, revision: str, path: str) -> None:
        found = self._find((prefix or "models/").rstrip("/"), repo_id)
        sha = self._revision(found, revision)
        if path not in found.commits[sha]:
            raise Answer(404, {"error": "no such file"}, X_Error_Code="EntryNotFound", X_Repo_Commit=sha)
        blob = found.commits[sha][path]
        headers = {"X_Repo_Commit": sha, "ETag": f'"{blob.oid}"', "Accept_Ranges": "bytes"}
        if blob.is_large:
            linked = {"X_Linked_Etag": f'"{blob.oid}"', "X_Linked_Size": str(len(blob.content))}
            self.hub.objects.setdefault(blob.oid, blob.content)
            raise Answer(302, **headers, **linked, Location=f"{self.hub.storage}/objects/{blob.oid}")
        self._send_range(blob.content, **headers)

    def download(self, oid: str) -> None:
        self._send_range(self.hub.objects[oid], ETag=f'"{oid}"', Accept_Ranges="bytes")

    def _send_range(self, content: bytes, **headers: str) -> None:
        if match := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or ""):
            start, stop = int(match[1]), min(int(match[2] or len(content)), len(content) - 1)
            headers["Content_Range"] = f"bytes {start}-{stop}/{len(content)}"
            raise Answer(206, content[start : stop + 1], **headers)
        if self.command == "HEAD":
            raise Answer(200, Content_Length=str(len(content)), **headers)
        raise Answer(200, content, **headers)


_ID = r"(?P<repo_id>[^/]+/[^/]+)"
_API = rf"/api/(?P<kind>models|datasets|spaces)/{_ID}"
_ROUTES = [
    (("GET",), r"/api/agent-harnesses", _Handler.no_registry),  # clients name in their user agent what runs them
    (("GET",), r"/api/whoami-v2", _Handler.who_am_i),
    (("GET",), r"/login/.*", _Handler.not_a_hub),
    (("POST",), r"/api/repos/create", _Handler.create),
    (("POST",), r"/api/validate-yaml", _Handler.validate_card),
    (("GET",), rf"{_API}(/revision/(?P<revision>.+))?", _Handler.info),
    (("GET",), rf"{_API}/tree/(?P<revision>[^/]+)(/(?P<folder>.+))?", _Handler.tree),
    (("POST",), rf"{_API}/paths-info/(?P<revision>[^/]+)", _Handler.paths_info),
    (("POST",), rf"{_API}/preupload/(?P<revision>[^/]+)", _Handler.preupload),
    (("POST",), rf"{_API}/commit/(?P<revision>[^/]+)", _Handler.commit),
    (("POST",), rf"/(?P<prefix>datasets/|spaces/)?{_ID}\.git/info/lfs/objects/batch", _Handler.batch),
    (("PUT",), r"/objects/(?P<oid>\w+)", _Handler.upload),
    (("GET", "HEAD"), r"/objects/(?P<oid>\w+)", _Handler.download),
    (
        ("GET", "HEAD"),
        rf"/(?P<prefix>datasets/|spaces/)?{_ID}/resolve/(?P<revision>[^/]+)/(?P<path>.+)",
        _Handler.resolve,
    ),
]
