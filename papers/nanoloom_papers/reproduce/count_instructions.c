/* A plugin of qemu-user: how many instructions a program executes, how many of them are
 * vectors', and of those on RISC-V, how many read memory and how many write it.  Needs no header of qemu's and no libc; prints with -d plugin. */
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
enum { LOAD = 0x07, STORE = 0x27 };
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
static uint64_t all, vectors, loads, stores;
static char machine; /* the first letter of its name */
static int copied;

static uint32_t word_of(const struct qemu_plugin_insn *instruction)
{
    unsigned char bytes[4] = {0};
    if (qemu_plugin_insn_size(instruction) != 4)
        return 0;
    const unsigned char *data = qemu_plugin_insn_data(instruction, bytes, sizeof bytes);
    data = copied ? bytes : data;
    return data[0] | data[1] << 8 | data[2] << 16 | (uint32_t)data[3] << 24;
}

/* RISC-V: loads and stores of floats with a vector's width. */
static int is_access(uint32_t word, uint32_t opcode)
{
    uint32_t width = word >> 12 & 7;
    return machine == 'r' && (word & 0x7f) == opcode && (!width || width > 4);
}

static int is_vector(uint32_t word)
{
    if (machine == 'r') /* OP-V besides */
        return (word & 0x7f) == 0x57 || is_access(word, LOAD) || is_access(word, STORE);
    if (machine == 'a') /* SVE; SME; NEON and scalar floats */
        return (word >> 25 & 15) == 2 || (word >> 25 & 0x4f) == 0x40 ||
               (word >> 25 & 7) == 7;
    return 0;
}

static void translated(plugin_id id, struct qemu_plugin_tb *block)
{
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(block), some[3] = {0};
    for (size_t i = 0; i < count; i++) {
        uint32_t word = word_of(qemu_plugin_tb_get_insn(block, i));
        some[0] += (size_t)is_vector(word);
        some[1] += (size_t)is_access(word, LOAD);
        some[2] += (size_t)is_access(word, STORE);
    }
    qemu_plugin_register_vcpu_tb_exec_inline(block, ADD, &all, count);
    qemu_plugin_register_vcpu_tb_exec_inline(block, ADD, &vectors, some[0]);
    qemu_plugin_register_vcpu_tb_exec_inline(block, ADD, &loads, some[1]);
    qemu_plugin_register_vcpu_tb_exec_inline(block, ADD, &stores, some[2]);
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
    say("loads ", loads);
    say("stores ", stores);
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
