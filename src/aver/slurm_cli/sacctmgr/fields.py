"""The fields of sacctmgr and sshare: each name with the least that may be typed of it, its header, and its width.

A row is a plain dict; what is not in it is empty: a limit that nobody set.
"""

from __future__ import annotations

from aver.fast_start import TYPE_CHECKING
from aver.slurm_cli.table.columns import CUT, TEXT, WHOLE

if TYPE_CHECKING:
    from aver.slurm_cli.table.columns import Field

# typed name, least letters, header, width, cut, key of the row
_FIELDS = (
    ("account", 3, "Account", 10, TEXT, "account"),
    ("acct", 4, "Account", 10, TEXT, "account"),
    ("actionraw", 7, "ActionRaw", 10, WHOLE, "action"),
    ("action", 4, "Action", 20, TEXT, "action"),
    ("actor", 4, "Actor", 10, TEXT, "actor"),
    ("adminlevel", 2, "Admin", 9, TEXT, "admin"),
    ("allocated", 2, "Allocated", 9, WHOLE, "allocated"),
    ("associations", 2, "Association", 10, TEXT, "association"),
    ("classification", 3, "Class", 9, TEXT, "classification"),
    ("clusternodes", 8, "Cluster Nodes", 20, TEXT, "nodes"),
    ("cluster", 2, "Cluster", 10, TEXT, "cluster"),
    ("controlhost", 8, "ControlHost", 15, TEXT, "control host"),
    ("controlport", 8, "ControlPort", 12, WHOLE, "control port"),
    ("coordinators", 2, "Coord Accounts", 20, TEXT, "coordinators"),
    ("count", 3, "Count", 6, WHOLE, "count"),
    ("cpucount", 2, "CPU Cnt", 9, WHOLE, "cpus"),
    ("defaultaccount", 8, "Def Acct", 10, TEXT, "default account"),
    ("defaultqos", 8, "Def QOS", 9, TEXT, "default qos"),
    ("defaultwckey", 8, "Def WCKey", 10, TEXT, "default wckey"),
    ("description", 3, "Descr", 20, TEXT, "description"),
    ("duration", 2, "Duration", 13, WHOLE, "duration"),
    ("end", 2, "TimeEnd", 19, CUT, "end"),
    ("timeend", 5, "TimeEnd", 19, CUT, "end"),
    ("event", 2, "Event", 7, TEXT, "event"),
    ("fairshare", 1, "Share", 9, WHOLE, "share"),
    ("features", 3, "Features", 20, TEXT, "features"),
    ("federation", 3, "Federation", 10, TEXT, "federation"),
    ("fedstate", 4, "FedState", 12, TEXT, "fedstate"),
    ("flags", 2, "Flags", 20, TEXT, "flags"),
    ("gracetime", 3, "GraceTime", 10, WHOLE, "grace time"),
    ("grpcpumins", 8, "GrpCPUMins", 11, WHOLE, "none"),
    ("grpcpurunmins", 7, "GrpCPURunMins", 13, WHOLE, "none"),
    ("grpcpus", 7, "GrpCPUs", 8, WHOLE, "none"),
    ("grpjobsaccrue", 8, "GrpJobsAccrue", 13, WHOLE, "none"),
    ("grpjobs", 4, "GrpJobs", 7, WHOLE, "none"),
    ("grpmemory", 4, "GrpMem", 7, WHOLE, "none"),
    ("grpnodes", 4, "GrpNodes", 8, WHOLE, "none"),
    ("grpsubmitjobs", 4, "GrpSubmit", 9, WHOLE, "none"),
    ("grptresmins", 9, "GrpTRESMins", 13, TEXT, "none"),
    ("grptresrunmins", 8, "GrpTRESRunMins", 14, TEXT, "none"),
    ("grptres", 7, "GrpTRES", 13, TEXT, "none"),
    ("grpwall", 4, "GrpWall", 11, WHOLE, "none"),
    ("id", 2, "ID", 6, WHOLE, "id"),
    ("info", 2, "Info", 30, TEXT, "info"),
    ("lastconsumed", 3, "LastConsumed", 12, WHOLE, "none"),
    ("lft", 1, "LFT", 6, WHOLE, "lft"),
    ("manager", 2, "Manager", 10, TEXT, "manager"),
    ("maxcpuminsperjob", 8, "MaxCPUMins", 11, WHOLE, "none"),
    ("maxcpusperjob", 7, "MaxCPUs", 8, WHOLE, "none"),
    ("maxjobsaccruepa", 15, "MaxJobsAccruePA", 15, WHOLE, "none"),
    ("maxjobsaccruepu", 15, "MaxJobsAccruePU", 15, WHOLE, "none"),
    ("maxjobsaccrue", 8, "MaxJobsAccrue", 13, WHOLE, "none"),
    ("maxjobspa", 9, "MaxJobsPA", 9, WHOLE, "none"),
    ("maxjobsperaccount", 11, "MaxJobsPA", 9, WHOLE, "none"),
    ("maxjobspu", 9, "MaxJobsPU", 9, WHOLE, "none"),
    ("maxjobsperuser", 11, "MaxJobsPU", 9, WHOLE, "none"),
    ("maxjobs", 4, "MaxJobs", 7, WHOLE, "none"),
    ("maxnodesperjob", 4, "MaxNodes", 8, WHOLE, "none"),
    ("maxsubmitjobspa", 15, "MaxSubmitPA", 11, WHOLE, "none"),
    ("maxsubmitpa", 11, "MaxSubmitPA", 11, WHOLE, "none"),
    ("maxsubmitjobsperaccount", 17, "MaxSubmitPA", 11, WHOLE, "none"),
    ("maxsubmitjobspu", 15, "MaxSubmitPU", 11, WHOLE, "none"),
    ("maxsubmitpu", 11, "MaxSubmitPU", 11, WHOLE, "none"),
    ("maxsubmitjobsperuser", 17, "MaxSubmitPU", 11, WHOLE, "none"),
    ("maxsubmitjobs", 4, "MaxSubmit", 9, WHOLE, "none"),
    ("maxtresminsperjob", 8, "MaxTRESMins", 13, TEXT, "none"),
    ("maxtrespa", 9, "MaxTRESPA", 13, TEXT, "none"),
    ("maxtresperaccount", 11, "MaxTRESPA", 13, TEXT, "none"),
    ("maxtrespernode", 11, "MaxTRESPerNode", 14, TEXT, "none"),
    ("maxtrespu", 9, "MaxTRESPU", 13, TEXT, "none"),
    ("maxtresperuser", 11, "MaxTRESPU", 13, TEXT, "none"),
    ("maxtresperjob", 7, "MaxTRES", 13, TEXT, "none"),
    ("maxtresrunminspa", 15, "MaxTRESRunMinsPA", 16, TEXT, "none"),
    ("maxtresrunminspu", 15, "MaxTRESRunMinsPU", 16, TEXT, "none"),
    ("maxwalldurationperjob", 4, "MaxWall", 11, WHOLE, "none"),
    ("minpriothreshold", 4, "MinPrioThres", 12, WHOLE, "none"),
    ("mintresperjob", 7, "MinTRES", 13, TEXT, "none"),
    ("name", 2, "Name", 10, TEXT, "name"),
    ("nodecount", 5, "Node Cnt", 9, WHOLE, "node count"),
    ("nodenames", 5, "NodeList", 20, TEXT, "nodes"),
    ("organization", 1, "Org", 20, TEXT, "organization"),
    ("parentid", 7, "Par ID", 6, WHOLE, "parent id"),
    ("parentname", 7, "Par Name", 10, TEXT, "parent"),
    ("partition", 4, "Partition", 10, TEXT, "partition"),
    ("preemptexempttime", 8, "PreemptExemptTime", 19, WHOLE, "none"),
    ("preemptmode", 8, "PreemptMode", 11, TEXT, "preempt mode"),
    ("preempt", 7, "Preempt", 10, TEXT, "none"),
    ("priority", 3, "Priority", 10, WHOLE, "priority"),
    ("problem", 3, "Problem", 40, TEXT, "problem"),
    ("qoslevel", 3, "QOS", 20, TEXT, "qos"),
    ("qosraw", 4, "QOS_RAW", 10, TEXT, "id"),
    ("rgt", 1, "RGT", 6, WHOLE, "rgt"),
    ("rpc", 2, "RPC", 5, WHOLE, "rpc"),
    ("server", 2, "Server", 10, TEXT, "server"),
    ("share", 2, "Share", 9, WHOLE, "share"),
    ("start", 4, "TimeStart", 19, CUT, "start"),
    ("timestart", 5, "TimeStart", 19, CUT, "start"),
    ("stateraw", 6, "StateRaw", 8, WHOLE, "state"),
    ("state", 3, "State", 6, TEXT, "state"),
    ("time", 4, "Time", 19, CUT, "time"),
    ("tres", 2, "TRES", 20, TEXT, "tres"),
    ("type", 2, "Type", 8, TEXT, "type"),
    ("usagefactor", 6, "UsageFactor", 11, WHOLE, "usage factor"),
    ("usagethreshold", 6, "UsageThres", 10, WHOLE, "none"),
    ("used", 4, "Used", 10, WHOLE, "used"),
    ("user", 1, "User", 10, TEXT, "user"),
    ("wckey", 2, "WCKey", 10, TEXT, "wckey"),
    ("where", 2, "Where", 20, TEXT, "where"),
)
_LIMITS = (
    "Share,Priority,GrpJobs,GrpTRES,GrpSubmit,GrpWall,GrpTRESMins,MaxJobs,MaxTRES,MaxTRESPerNode,MaxSubmit,MaxWall,"
    "MaxTRESMins,QOS,DefaultQOS"
)
_FEWER = "Share,Priority,MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall,MaxCPUMins,QOS,DefaultQOS"
BY_DEFAULT = {
    "account": "Account,Description,Organization",
    "account with associations": f"Account,Description,Organization,Cluster,ParentName,User,{_LIMITS}",
    "association": f"Cluster,Account,User,Partition,{_LIMITS},GrpTRESRunMins",
    "cluster": "Cluster,ControlHost,ControlPort,RPC,Share,GrpJobs,GrpTRES,GrpSubmit,MaxJobs,MaxTRES,MaxSubmit,MaxWall,"
    "QOS,DefaultQOS",
    "event": "Cluster,NodeNames,TimeStart,TimeEnd,State,Info,User",
    "federation": "Federation,Cluster,ID,Features,FedState",
    "problem": "Cluster,Account,User,Problem",
    "qos": "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags,UsageThreshold,UsageFactor,GrpTRES,"
    "GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmit,GrpWall,MaxTRES,MaxTRESPerNode,MaxTRESMins,MaxWall,MaxTRESPU,"
    "MaxJobsPU,MaxSubmitPU,MaxTRESPA,MaxJobsPA,MaxSubmitPA,MinTRES",
    "reservation": "Cluster,Name,TRES,TimeStart,TimeEnd",
    "resource": "Name,Server,Type,Count,LastConsumed,Allocated,Flags",
    "runawayjobs": "ID,Name,Partition,Cluster,State,TimeStart,TimeEnd",
    "transaction": "Time,Action,Actor,Where,Info",
    "tres": "Type,Name,ID",
    "user": "User,DefaultAccount,AdminLevel",
    "user with associations": f"User,DefaultAccount,AdminLevel,Cluster,Account,Partition,{_FEWER}",
    "wckey": "WCKey,Cluster,User",
}


def field(name: str) -> Field | None:
    """The field of a whole or cut name in small letters."""
    for full, least, header, width, cut, key in _FIELDS:
        if (len(name) >= least and full.startswith(name)) or full == name:
            return header, width, cut, lambda row, key=key: row.get(key, "")
    return None
