"""A Slurm cluster of one node on this machine, with folders, key and ports of its own: no system service is touched.

    with small_slurm(folder, tasks=2) as environment:
        subprocess.run(["sbatch", ...], env=environment)

Needs Debian's slurm-wlm and munge, and root, which slurmd must be.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")
PARTITION = "local"
SECONDS_TO_START = 60


def missing_reason() -> str | None:
    """Return why Slurm cannot be started here, or None if it can."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    if missing:
        return f"needs {', '.join(missing)}: apt-get install slurm-wlm munge"
    return None if os.geteuid() == 0 else "needs root, which slurmd must be"


def _path() -> str:
    return os.environ["PATH"] + os.pathsep + "/usr/sbin"


@contextlib.contextmanager
def small_slurm(folder: Path, tasks: int = 2) -> Iterator[dict[str, str]]:
    """Start a cluster in a folder; yield the environment in which its commands work; stop it at the end."""
    environment = os.environ | {"PATH": _path(), "SLURM_CONF": str(folder / "slurm.conf")}
    processes: list[subprocess.Popen[bytes]] = []
    for name in ("state", "spool", "munge"):
        (folder / name).mkdir(parents=True, mode=0o755)
    folder.chmod(0o755)
    try:
        processes.append(_start_munge(folder))
        _write_configuration(folder, tasks)
        for program in ("slurmctld", "slurmd"):
            log = (folder / f"{program}.out").open("wb")
            processes.append(subprocess.Popen([program, "-D"], env=environment, stdout=log, stderr=log))
        _wait_until_idle(folder, environment)
        yield environment
        subprocess.run(["scancel", f"--partition={PARTITION}"], env=environment, check=False)
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in reversed(processes):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def _start_munge(folder: Path) -> subprocess.Popen[bytes]:
    key = folder / "munge/key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    places = {name: folder / f"munge/{name}" for name in ("socket", "pid-file", "log-file", "seed-file")}
    flags = [f"--{name}={place}" for name, place in places.items()]
    # --force: the folder above may be writable by others, as /tmp is.
    command = ["munged", "--foreground", "--force", f"--key-file={key}", *flags]
    log = (folder / "munged.out").open("wb")
    process = subprocess.Popen(command, env=os.environ | {"PATH": _path()}, stdout=log, stderr=log)
    _wait_for(places["socket"].exists, "munged")
    return process


def _write_configuration(folder: Path, tasks: int) -> None:
    host = socket.gethostname().split(".")[0]
    settings = {
        "ClusterName": "small",
        "SlurmctldHost": f"{host}(127.0.0.1)",
        "SlurmUser": "root",
        "SlurmctldPort": _free_port(),
        "SlurmdPort": _free_port(),
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={folder}/munge/socket",
        "CryptoType": "crypto/munge",
        "StateSaveLocation": folder / "state",
        "SlurmdSpoolDir": folder / "spool",
        "SlurmctldPidFile": folder / "slurmctld.pid",
        "SlurmdPidFile": folder / "slurmd.pid",
        "SlurmctldLogFile": folder / "slurmctld.log",
        "SlurmdLogFile": folder / "slurmd.log",
        # Without cgroups, which a container may not write.
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "AccountingStorageType": "accounting_storage/none",
        "SwitchType": "switch/none",
        "MpiDefault": "none",
        "SchedulerType": "sched/backfill",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_CPU",
        "ReturnToService": 2,
        "SchedulerParameters": "sched_min_interval=100000",
        "MailProg": "/bin/true",
    }
    lines = [f"{name}={value}" for name, value in settings.items()]
    megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    lines.append(f"NodeName={host} NodeAddr=127.0.0.1 CPUs={tasks} RealMemory={megabytes} State=UNKNOWN")
    lines.append(f"PartitionName={PARTITION} Nodes={host} Default=YES MaxTime=INFINITE State=UP")
    (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
    (folder / "cgroup.conf").write_text(f"CgroupPlugin={_cgroup_plugin()}\n")


def _cgroup_plugin() -> str:
    """Return a plugin that only has to load: versions before 23.02 cannot do without."""
    version = subprocess.run(["slurmd", "-V"], env=os.environ | {"PATH": _path()}, capture_output=True, text=True)
    major, minor = version.stdout.split()[1].split(".")[:2]
    return "disabled" if (int(major), int(minor)) >= (23, 2) else "cgroup/v1"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait_until_idle(folder: Path, environment: dict[str, str]) -> None:
    def idle() -> bool:
        answer = subprocess.run(
            ["sinfo", "--noheader", "--format=%T"], env=environment, capture_output=True, text=True
        )
        return answer.stdout.strip() == "idle"

    try:
        _wait_for(idle, "the cluster")
    except TimeoutError as error:
        logs = "\n".join(path.read_text(errors="replace")[-2000:] for path in sorted(folder.glob("slurm*.log")))
        raise TimeoutError(f"{error}\n{logs}") from None


def _wait_for(condition: Callable[[], bool], what: str) -> None:
    for _ in range(4 * SECONDS_TO_START):
        if condition():
            return
        time.sleep(0.25)
    raise TimeoutError(f"{what} did not start in {SECONDS_TO_START} seconds")
