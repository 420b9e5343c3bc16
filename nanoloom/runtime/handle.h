/* What a handle of the C interface is made of.
 *
 * For the files that are compiled once for each model, with -DNANOLOOM_MODEL=name, and
 * NANOLOOM_SIZED where it has sizes, NANOLOOM_SESSION where it also keeps tokens,
 * NANOLOOM_COUNTED where the shapes of outputs depend on data, and NANOLOOM_GROWN as well
 * where they have no bound. */
#ifndef NANOLOOM_HANDLE_H
#define NANOLOOM_HANDLE_H

#include <stdatomic.h>

#include "control.h"
#include "counted.h"
#include "growth.h"
#include "kept.h"
#include "library.h"

#define JOIN_NOW(prefix, model, name) prefix##model##name
#define JOIN(prefix, model, name) JOIN_NOW(prefix, model, name)
#define HANDLE struct JOIN(nanoloom_, NANOLOOM_MODEL, )
#define PUBLIC(name) JOIN(nanoloom_, NANOLOOM_MODEL, _##name)

HANDLE {
    nanoloom_parallel parallel;
    void *context;
    struct nanoloom_member member; /* its pool is NULL when the caller brought one */
    const struct nanoloom_program *program; /* NULL while its sizes have no numbers */
    char *rooms;                            /* of it, and of the next one */
    int64_t room_bytes;
    void *workspace;
    int64_t workspace_bytes;
    int64_t threads; /* with scratch memory in the workspace */
    int64_t limit; /* nanoseconds of a run, 0 for as long as it takes */
    struct nanoloom_control control; /* of the run under way */
    atomic_int busy;
#ifdef NANOLOOM_SIZED
    int32_t wrong_dim; /* of the last resize, NANOLOOM_NONE where none is out of bounds */
    int64_t wrong;     /* its number */
#endif
#ifdef NANOLOOM_SESSION
    struct nanoloom_kept kept;
#endif
#ifdef NANOLOOM_COUNTED
    struct nanoloom_counted counted;
#endif
#ifdef NANOLOOM_GROWN
    struct nanoloom_growth growth;
#endif
};

/* Begins the time of a run and waits for threads: NANOLOOM_OK, or why it is over already.
 * Behind the run they are given back. */
int nanoloom_handle_begin(HANDLE *handle);
void nanoloom_handle_end(HANDLE *handle);

/* Memory for a new handle; 0 where there is none. */
int nanoloom_handle_prepare(HANDLE *handle);

#ifdef NANOLOOM_SIZED
/* Binds the program to all its dimensions: NANOLOOM_OK, or what is wrong, which leaves the
 * handle as it was. */
int nanoloom_handle_bind(HANDLE *handle, const int64_t *dims);

/* What was wrong with the sizes of the last resize, as snprintf writes it. */
int nanoloom_handle_explain_sizes(const HANDLE *handle, char *text, size_t bytes);
#endif

#ifdef NANOLOOM_GROWN
/* Binds the program to sizes that the caller chooses; as nanoloom_handle_bind. */
int nanoloom_growth_resize(HANDLE *handle, const int64_t *sizes);
#endif

#ifdef NANOLOOM_SESSION
int nanoloom_session_prepare(HANDLE *handle);
void nanoloom_session_release(HANDLE *handle);

/* Binds the program to sizes that the caller chooses; as nanoloom_handle_bind. */
int nanoloom_session_resize(HANDLE *handle, const int64_t *sizes);

/* Whether a program takes what is kept, and adds no more than there may be. */
int nanoloom_session_takes(const HANDLE *handle, const struct nanoloom_program *program);

/* Makes the handle ready to append: its program, room, and pointers in place of the
 * caller's. */
int nanoloom_session_begin(HANDLE *handle, const void *const **inputs,
                           void *const **outputs);
#endif

#endif
