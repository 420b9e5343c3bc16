/* A plugin of qemu-user: how many instructions a program executes, and how many of them
 * are vectors'.  Needs no header of qemu's and no libc; prints with -d plugin. */
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
enum { ADD = 0, INSTRUCTION_BYTES_COPIED = 3 }; /* the interface that copies them */

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct info {
    const char *target;
    struct {
        int least, current;
    } version;
};

extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *,
                                                        size_t);
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *, size_t);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id,
                                                  void (*)(plugin_id,
                                                           struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int, void *,
                                                     uint64_t);
extern void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
extern void qemu_plugin_outs(const char *);

EXPORT int qemu_plugin_version = 1;
static uint64_t all, vectors;
static char machine; /* the first letter of its name */
static int copied;

static int is_vector(const struct qemu_plugin_insn *instruction)
{
    unsigned char bytes[4] = {0};
    if (qemu_plugin_insn_size(instruction) != 4)
        return 0;
    const unsigned char *data = qemu_plugin_insn_data(instruction, bytes, sizeof bytes);
    data = copied ? bytes : data;
    uint32_t word = data[0] | data[1] << 8 | data[2] << 16 | (uint32_t)data[3] << 24;
    uint32_t opcode = word & 0x7f, width = word >> 12 & 7;
    if (machine == 'r') /* OP-V; loads and stores of floats with a vector's width */
        return opcode == 0x57 || ((opcode == 0x07 || opcode == 0x27) && (!width || width > 4));
    if (machine == 'a') /* SVE; NEON and scalar floats */
        return (word >> 25 & 15) == 2 || (word >> 25 & 7) == 7;
    return 0;
}

static void translated(plugin_id id, struct qemu_plugin_tb *block)
{
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(block), of_vectors = 0;
    for (size_t i = 0; i < count; i++)
        of_vectors += (size_t)is_vector(qemu_plugin_tb_get_insn(block, i));
    qemu_plugin_register_vcpu_tb_exec_inline(block, ADD, &all, count);
    qemu_plugin_register_vcpu_tb_exec_inline(block, ADD, &vectors, of_vectors);
}

static void say(const char *name, uint64_t number)
{
    char digits[24], *at = digits + sizeof digits - 1;
    *at = 0;
    *--at = '\n';
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    qemu_plugin_outs(name);
    qemu_plugin_outs(at);
}

static void finished(plugin_id id, void *nothing)
{
    (void)id, (void)nothing;
    say("instructions ", all);
    say("vectors ", vectors);
}

EXPORT int qemu_plugin_install(plugin_id id, const struct info *info, int count, char **words)
{
    (void)count, (void)words;
    machine = info->target[0];
    copied = info->version.current >= INSTRUCTION_BYTES_COPIED;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, finished, NULL);
    return 0;
}
