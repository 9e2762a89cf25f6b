"""A job and a step as `scontrol show` lays them out: the keys and their order are those of the release."""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING
from aver.slurm_cli import texts
from aver.slurm_cli.settings import is_since
from aver.slurm_cli.table.placement import contiguous, min_cpus, min_tmp_disk, over_subscribe
from aver.slurm_cli.texts import NULL, full_clock, moment

if TYPE_CHECKING:
    from aver.slurm_cli.facts import JobFacts
    from aver.slurm_cli.squeue.fields import StepFacts

_BETWEEN = "\n   "


def job_text(job: JobFacts, *, is_oneline: bool, has_details: bool) -> str:
    """The job, with the empty line that ends it."""
    lines = [*_who(job, has_details=has_details), *_how(job, has_details=has_details), *_when(job), *_where(job)]
    lines += [*_resources(job, has_details=has_details), *_what(job), *([] if is_since("24.05") else ["Power="])]
    if job.gpus or job.named.get("gres"):
        lines.append(f"TresPerNode=gres:{job.text('gres') or f'gpu:{job.gpus}'}")
    if not is_since("25.11"):
        lines.append("")
    return " ".join(lines) + "\n" if is_oneline else _BETWEEN.join(lines) + "\n\n"


def _who(job: JobFacts, *, has_details: bool) -> list[str]:
    array = ""
    if job.array_job is not None:
        throttle = f" ArrayTaskThrottle={job.array_limit}" if job.array_limit else ""
        array = f"ArrayJobId={job.array_job} ArrayTaskId={job.index_text}{throttle} "
    return [
        f"JobId={job.number} {array}JobName={job.name}",
        *([f"SLUID={job.sluid}"] if has_details and is_since("25.11") else []),
        f"UserId={job.user}({job.uid}) GroupId={job.group}({job.gid}) MCS_label=N/A",
        f"Priority={job.priority} Nice={job.named.get('nice', '0')} Account={job.account or NULL} QOS={job.qos}",
    ]


def _how(job: JobFacts, *, has_details: bool) -> list[str]:
    return [
        f"JobState={job.queue_state} Reason={job.reason} Dependency={job.dependency or NULL}",
        f"Requeue={job.requeue} Restarts={job.restarts} BatchFlag={1 if job.is_batch else 0} Reboot=0 "
        f"ExitCode={job.exit_text}",
        *([f"DerivedExitCode={job.derived_text}"] if has_details else []),
    ]


def _time_min(job: JobFacts) -> str:
    least_s = job.named.get("time_min_s")
    return "N/A" if least_s is None else full_clock(least_s)


def _when(job: JobFacts) -> list[str]:
    is_suspended = job.state == "SUSPENDED"
    suspended = moment(job.suspended_at, "None") if is_suspended else "None"
    before = int(job.elapsed_s) if is_suspended else 0
    accrued = None if job.row.reason == "BeginTime" else job.eligible_at
    return [
        f"RunTime={full_clock(job.elapsed_s)} TimeLimit={full_clock(job.limit_s)} TimeMin={_time_min(job)}",
        f"SubmitTime={moment(job.submitted_at)} EligibleTime={moment(job.eligible_at)}",
        f"AccrueTime={moment(accrued)}",
        f"StartTime={moment(job.started_at)} EndTime={moment(job.ended_at)} "
        f"Deadline={moment(job.spec.get('deadline_at'), 'N/A')}",
        f"SuspendTime={suspended} SecsPreSuspend={before} "
        f"LastSchedEval={moment(job.row.planned_at or job.submitted_at)} Scheduler=Main",
    ]


def _where(job: JobFacts) -> list[str]:
    host = str(job.origin.get("host", "")).partition(".")[0]
    asked, left_out = job.text("nodelist") or NULL, job.text("exclude") or NULL
    return [
        f"Partition={job.partition} AllocNode:Sid={host}:0",
        f"ReqNodeList={asked} ExcNodeList={left_out}",
        f"NodeList={job.node}",
        *([f"BatchHost={job.node}"] if job.node else []),
    ]


def _resources(job: JobFacts, *, has_details: bool) -> list[str]:
    tres = ",".join(f"{name}={value}" for name, value in job.tres)
    per = "CPU" if job.is_mem_per_cpu else "Node"
    details = []
    if has_details:
        gres = f"gpu:{job.gpus}" if job.gpus else NULL
        details = [f"JOB_GRES={gres}"]
        if job.node:
            details.append(f"  Nodes={job.node} CPU_IDs= Mem={job.mem_mib} GRES={gres if job.gpus else ''}")
    licenses = job.text("licenses") or NULL
    if is_since("25.05"):
        licenses += f" LicensesAlloc={licenses if job.node else NULL}"
    return [
        f"NumNodes=1 NumCPUs={job.cpus} NumTasks={job.tasks} CPUs/Task={job.cpus_per_task} ReqB:S:C:T=0:0:*:*",
        *([f"ReqTRES={tres}", f"AllocTRES={tres if job.node else NULL}"] if is_since("23.02") else [f"TRES={tres}"]),
        "Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*",
        *details,
        f"MinCPUsNode={min_cpus(job)} MinMemory{per}={job.shown_mem} MinTmpDiskNode={min_tmp_disk(job)}",
        f"Features={job.text('features') or NULL} DelayBoot=00:00:00",
        f"OverSubscribe={over_subscribe(job)} Contiguous={contiguous(job)} Licenses={licenses} Network=(null)",
    ]


def _what(job: JobFacts) -> list[str]:
    files = job.files
    is_new = is_since("25.11")
    comments = [("Comment", f"{job.comment} "), ("SystemComment", f"{job.system_comment} ")]
    if is_new:
        comments = [(name, text[:-1]) for name, text in reversed(comments)]
    return [
        f"Command={job.command or NULL}",
        *([f"SubmitLine={job.submit_line or NULL}"] if is_new else []),
        f"WorkDir={job.workdir}",
        *(f"{name}={text}" for name, text in comments if text.strip()),
        f"StdErr={job.book.shown(files.stderr or ('' if is_new else files.stdout))}",
        f"StdIn={job.book.shown(files.stdin or '/dev/null')}",
        f"StdOut={job.book.shown(files.stdout)}",
    ]


def step_text(step: StepFacts, *, is_oneline: bool) -> str:
    """A step that runs, with the empty line that ends it."""
    job = step.job
    is_batch = step.label == "batch"
    mem = f",mem={texts.size(job.mem_mib, 'M')}" if job.mem_mib else ""
    tres = NULL if is_batch else f"cpu={step.tasks}{mem},node=1"
    lines = [
        f"StepId={step.id_text} UserId={job.uid} StartTime={moment(step.started_at)} "
        f"TimeLimit={full_clock(step.limit_s)}",
        f"State=RUNNING Partition={job.partition} NodeList={job.node}",
        f"Nodes=1 CPUs={0 if is_batch else step.tasks} Tasks={step.tasks} Name={step.name} Network=(null)",
        f"TRES={tres}",
        "ResvPorts=(null)",
        "CPUFreqReq=Default" + ("" if is_batch else " Dist=Block"),
        f"SrunHost:Pid={NULL if is_batch else job.node}:0",
    ]
    return " ".join(lines) + "\n" if is_oneline else _BETWEEN.join(lines) + "\n\n"
