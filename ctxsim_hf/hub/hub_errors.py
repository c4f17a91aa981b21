"""Turn errors of the Hub's client into one line each that says what to do."""

import contextlib
from collections.abc import Iterator

import httpx2
from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

from ctxsim_hf.runtime.errors import UserError

RETRY = "it is complete as of its last commit. Run the same command again, which sends only what is missing"


@contextlib.contextmanager
def hub_errors(repo_id: str) -> Iterator[None]:
    """Turn errors of the Hub's client into UserErrors, none of which shows the token."""
    try:
        yield
    except LocalTokenNotFoundError as error:
        raise UserError("no token to publish with; log in with `hf auth login`, or set HF_TOKEN") from error
    except OfflineModeIsEnabled as error:
        raise UserError("HF_HUB_OFFLINE is set, so nothing can be published; unset it") from error
    except (httpx2.HTTPError, ConnectionError, TimeoutError) as error:
        raise UserError(_explain(error, repo_id)) from error
    except RuntimeError as error:  # the client's "Error while uploading", which hides why
        if error.__cause__ is None:
            raise
        raise UserError(_explain(error.__cause__, repo_id)) from error
    except (KeyError, TypeError, AttributeError) as error:  # an answer that lacks what the client looks for
        said = f"{type(error).__name__}: {error}"
        raise UserError(f"the server did not answer as a Hub would ({said}); check HF_ENDPOINT") from error
    except ValueError as error:  # not JSON: a proxy's page, or a server that is not a Hub
        raise UserError(f"the server did not answer as a Hub would ({error}); check HF_ENDPOINT") from error


def _explain(error: BaseException, repo_id: str) -> str:
    if isinstance(error, HfHubHTTPError):
        status = error.response.status_code
        if status == 401:
            return "the Hub does not know this token; log in with `hf auth login`, or set HF_TOKEN to a valid one"
        if status == 403:
            owner = repo_id.split("/")[0]
            return f"this token may not write to {repo_id!r}; it needs the right to write in {owner!r}"
        if status == 412:
            return f"somebody else changed {repo_id!r} meanwhile; check what it holds, then run the same command again"
        said = error.server_message or f"status {status}"
        return f"the Hub refused to publish {repo_id!r}: {said}. If it exists, {RETRY}"
    return (
        f"the Hub could not be reached, or the connection broke off ({type(error).__name__}). "
        f"If {repo_id!r} exists, {RETRY}"
    )
