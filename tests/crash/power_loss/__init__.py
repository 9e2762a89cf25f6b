"""What a power cut leaves: record what is written, make each state that a disk may then have, and open a home on it.

`recorder` (with recorder.c) records what coordinator, witness and clients write, `workload` is what is recorded,
`trace` reads it. `disk` is the model: what is durable and what is not at each position of the trace. `states` chooses
what survives, by seed; `tree` puts that on a real disk. `reopen` is the coordinator after the reboot; `checks` says
what must hold. The first three are the only ones that know processes.
"""
