"""Keys of `scontrol show config` that are the same on every machine here. Clients look them up first.

Values say what a client may rely on: `accounting_storage/slurmdbd`, since sacct and sacctmgr answer.
"""

NOT_SET = (
    "AccountingStorageBackupHost AccountingStorageExternalHost AccountingStorageParameters AuthAltTypes "
    "AuthAltParameters AuthInfo BcastExclude BcastParameters BurstBufferType CliFilterPlugins "
    "CommunicationParameters CpuFreqGovernors DebugFlags DependencyParameters Epilog EpilogSlurmctld "
    "FederationParameters GpuFreqDef HealthCheckProgram InteractiveStepOptions JobAcctGatherParams JobCompHost "
    "JobCompLoc JobCompUser JobCredentialPrivateKey JobCredentialPublicCertificate JobDefaults JobSubmitPlugins "
    "LaunchParameters MailDomain MCSParameters MpiParams NodeFeaturesPlugins PluginDir PlugStackConfig "
    "PowerParameters PrEpParameters PrEpPlugins PriorityParameters PrioritySiteFactorParameters "
    "PrioritySiteFactorPlugin PriorityWeightTRES Prolog PrologSlurmctld PrologFlags PropagateResourceLimitsExcept "
    "RebootProgram ReconfigFlags RequeueExit RequeueExitHold ResumeFailProgram ResumeProgram ResvEpilog ResvProlog "
    "SchedulerParameters ScronParameters SlurmctldAddr SlurmctldLogFile SlurmctldSyslogDebug "
    "SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg SlurmctldParameters SlurmdLogFile SlurmdParameters "
    "SlurmdPidFile SlurmdSpoolDir SlurmdSyslogDebug SlurmSchedLogFile SlurmctldPidFile SlurmctldPlugstack "
    "SrunEpilog SrunProlog SuspendExcNodes SuspendExcParts SuspendProgram SwitchParameters TaskEpilog TaskProlog "
    "TopologyParam UnkillableStepProgram X11Parameters "
).split()
FIXED = {
    "AccountingStorageEnforce": "none",
    "AccountingStorageHost": "localhost",
    "AccountingStoragePort": "0",
    "AccountingStorageType": "accounting_storage/slurmdbd",
    "AccountingStorageUser": "N/A",
    "AcctGatherEnergyType": "acct_gather_energy/none",
    "AcctGatherFilesystemType": "acct_gather_filesystem/none",
    "AcctGatherInterconnectType": "acct_gather_interconnect/none",
    "AcctGatherNodeFreq": "0 sec",
    "AcctGatherProfileType": "acct_gather_profile/none",
    "AllowSpecResourcesUsage": "No",
    "AuthType": "auth/none",
    "BatchStartTimeout": "0 sec",
    "CompleteWait": "0 sec",
    "CoreSpecPlugin": "core_spec/none",
    "CpuFreqDef": "Unknown",
    "CredType": "cred/none",
    "DisableRootJobs": "No",
    "EioTimeout": "0",
    "EpilogMsgTime": "0 usec",
    "ExtSensorsType": "ext_sensors/none",
    "ExtSensorsFreq": "0 sec",
    "FairShareDampeningFactor": "1",
    "GetEnvTimeout": "0 sec",
    "GroupUpdateForce": "0",
    "GroupUpdateTime": "0 sec",
    "HASH_VAL": "Match",
    "HealthCheckInterval": "0 sec",
    "HealthCheckNodeState": "ANY",
    "InactiveLimit": "0 sec",
    "JobAcctGatherType": "jobacct_gather/linux",
    "JobCompPort": "0",
    "JobCompType": "jobcomp/none",
    "JobContainerType": "job_container/none",
    "LaunchType": "launch/slurm",
    "LogTimeFormat": "iso8601_ms",
    "MailProg": "/usr/sbin/sendmail",
    "MaxDBDMsgs": "0",
    "MaxJobCount": "4294967294",
    "MaxJobId": "9223372036854775807",
    "MaxStepCount": "4294967294",
    "MaxTasksPerNode": "512",
    "MCSPlugin": "mcs/none",
    "MessageTimeout": "10 sec",
    "MULTIPLE_SLURMD": "No",
    "PowerPlugin": "",
    "PreemptType": "preempt/none",
    "PreemptExemptTime": "00:00:00",
    "PriorityDecayHalfLife": "00:00:00",
    "PriorityCalcPeriod": "00:00:00",
    "PriorityFavorSmall": "No",
    "PriorityFlags": "",
    "PriorityMaxAge": "00:00:00",
    "PriorityUsageResetPeriod": "NONE",
    "PriorityType": "priority/multifactor",
    "PriorityWeightAge": "0",
    "PriorityWeightAssoc": "0",
    "PriorityWeightFairShare": "0",
    "PriorityWeightJobSize": "0",
    "PriorityWeightPartition": "0",
    "PriorityWeightQOS": "0",
    "ProctrackType": "proctrack/cgroup",
    "PrologEpilogTimeout": "65534",
    "PropagatePrioProcess": "0",
    "PropagateResourceLimits": "ALL",
    "ResumeRate": "0 nodes/min",
    "ResumeTimeout": "0 sec",
    "ResvOverRun": "0 min",
    "ReturnToService": "2",
    "RoutePlugin": "route/default",
    "SchedulerTimeSlice": "0 sec",
    "SchedulerType": "sched/backfill",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_CPU_MEMORY",
    "SlurmctldDebug": "info",
    "SlurmctldPort": "0",
    "SlurmctldTimeout": "0 sec",
    "SlurmdDebug": "info",
    "SlurmdPort": "0",
    "SlurmdTimeout": "0 sec",
    "SlurmdUser": "root(0)",
    "SlurmSchedLogLevel": "0",
    "SrunPortRange": "0-0",
    "SuspendRate": "0 nodes/min",
    "SuspendTime": "INFINITE",
    "SuspendTimeout": "0 sec",
    "SwitchType": "switch/none",
    "TaskPlugin": "task/none",
    "TaskPluginParam": "(null type)",
    "TCPTimeout": "0 sec",
    "TmpFS": "/tmp",
    "TopologyPlugin": "topology/none",
    "TreeWidth": "0",
    "UsePam": "No",
    "UnkillableStepTimeout": "60 sec",
    "VSizeFactor": "0 percent",
}
