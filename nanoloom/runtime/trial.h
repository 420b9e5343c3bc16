/* Extensions of which the system says nothing: whether their instructions run. */
#ifndef NANOLOOM_TRIAL_H
#define NANOLOOM_TRIAL_H

/* Whether an extension, by LLVM's name, is there: one of its instructions is executed,
 * and SIGILL is caught.  1 for a name that has no trial.  For a program's start: signals
 * belong to the process, so no other thread may be at work. */
int nanoloom_tried(const char *name);

#endif
