/* How many threads suit this process, and what it must ask of the system. */
#define _GNU_SOURCE
#include "cpus.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH = 4096, LINE = 512 };

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Two numbers of a file, "max" and a missing file being no limit. */
static int read_numbers(const char *path, long long *first, long long *second)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    int found = fscanf(file, "%lld %lld", first, second);
    fclose(file);
    return found;
}

/* CPUs a quota amounts to, rounded down: a thread the quota stops holds up all others. */
static int cpus_of(long long quota, long long period, int limit)
{
    if (quota <= 0 || period <= 0)
        return limit;
    long long cpus = quota / period;
    return cpus < 1 ? 1 : cpus < limit ? (int)cpus : limit;
}

/* The tightest limit from a group's folder up to the mount point. */
static int walk(const char *mount, const char *group, int unified, int limit)
{
    char path[PATH + LINE];
    char name[LINE];
    snprintf(name, sizeof name, "%s", group);
    for (;;) {
        long long quota = 0, period = 0, unused;
        const char *file = unified ? "cpu.max" : "cpu.cfs_quota_us";
        snprintf(path, sizeof path, "%s%s/%s", mount, name, file);
        int found = read_numbers(path, &quota, &period);
        if (!unified && found) {
            snprintf(path, sizeof path, "%s%s/cpu.cfs_period_us", mount, name);
            read_numbers(path, &period, &unused);
        }
        if (found)
            limit = cpus_of(quota, period, limit);
        char *slash = strrchr(name, '/');
        if (!slash)
            return limit;
        *slash = 0;
    }
}

static int has_cpu_controller(const char *controllers)
{
    for (const char *at = controllers; (at = strstr(at, "cpu")); at += 3) {
        int begins = at == controllers || at[-1] == ',';
        if (begins && (at[3] == 0 || at[3] == ','))
            return 1;
    }
    return 0;
}

static int cgroup_cpus(int limit)
{
    FILE *groups = fopen("/proc/self/cgroup", "re");
    if (!groups)
        return limit;
    char line[LINE];
    while (fgets(line, sizeof line, groups)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        controllers++;
        if (*controllers == 0)
            limit = walk("/sys/fs/cgroup", group, 1, limit);
        else if (has_cpu_controller(controllers))
            limit = walk("/sys/fs/cgroup/cpu", group, 0, limit);
    }
    fclose(groups);
    return limit;
}

int nanoloom_default_threads(void)
{
    cpu_set_t set;
    int cpus = sched_getaffinity(0, sizeof set, &set) ? 0 : CPU_COUNT(&set);
    if (cpus < 1) /* more CPUs than a cpu_set_t holds */
        cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    cpus = cgroup_cpus(cpus < 1 ? 1 : cpus);
    const char *wish = getenv("OMP_NUM_THREADS");
    int wanted = wish ? atoi(wish) : 0;
    return wanted > 0 ? smaller(wanted, cpus) : cpus;
}

int nanoloom_request_tiles(void)
{
#if defined(__x86_64__)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return (int)syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA);
#else
    return -1;
#endif
}
