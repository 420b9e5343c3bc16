/* Arrays in .npy files: ten bytes, the text of a Python dict, the elements. */
#include "npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "refusal.h"
#include "tensors.h"

enum { MAGIC_BYTES = 6, LARGEST_HEADER = 64 << 10, MOST_AXES = 64, ALIGNMENT = 64 };
enum { AXIS_TEXT = 24, KEYS_TEXT = 128 }; /* of a header that is written */

static const char magic[] = "\x93NUMPY";

/* What a header says.  `type` is the text between the quotes. */
struct header {
    char type[32];
    int by_columns;
    int32_t rank;
    int64_t shape[MOST_AXES];
};

static _Noreturn void damaged(const char *path)
{
    nanoloom_refuse(path, "has a damaged header; save it again with numpy.save");
}

static size_t read_some(FILE *file, void *memory, size_t bytes, const char *path)
{
    size_t count = fread(memory, 1, bytes, file);
    if (count < bytes && ferror(file))
        nanoloom_refuse(path, "cannot be read: %s", strerror(errno));
    return count;
}

/* The dict's text, to be freed. */
static char *header_text(FILE *file, const char *path)
{
    unsigned char head[MAGIC_BYTES + 6];
    size_t found = read_some(file, head, MAGIC_BYTES + 2, path);
    if (found >= 4 && memcmp(head, "PK\3\4", 4) == 0)
        nanoloom_refuse(path, "is an archive (.npz), not a .npy file");
    if (found < MAGIC_BYTES + 2 || memcmp(head, magic, MAGIC_BYTES) != 0)
        nanoloom_refuse(path, "is no .npy file");
    size_t width = head[MAGIC_BYTES] == 1 ? 2 : 4, length = 0;
    if (read_some(file, head, width, path) < width)
        damaged(path);
    for (size_t i = width; i-- > 0;)
        length = length << 8 | head[i];
    char *text = length <= LARGEST_HEADER ? malloc(length + 1) : NULL;
    if (!text || read_some(file, text, length, path) < length)
        damaged(path);
    text[length] = 0;
    return text;
}

/* Where a key's value begins; NULL where there is no such key. */
static const char *value_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? at + strlen(key) + strspn(at + strlen(key), " ") : NULL;
}

/* The numbers between brackets; 0 where something else stands there. */
static int read_shape(struct header *found, const char *at)
{
    if (*at++ != '(')
        return 0;
    while (*(at += strspn(at, ", ")) != ')') {
        char *end;
        errno = 0;
        long long size = strtoll(at, &end, 10);
        if (end == at || errno || size < 0 || found->rank == MOST_AXES)
            return 0;
        found->shape[found->rank++] = size;
        at = end;
    }
    return 1;
}

static struct header read_header(FILE *file, const char *path)
{
    struct header found = {.rank = 0};
    char *text = header_text(file, path);
    const char *type = value_of(text, "'descr':"), *order, *shape;
    order = value_of(text, "'fortran_order':");
    shape = value_of(text, "'shape':");
    if (!type || !order || !shape)
        damaged(path);
    if (*type == '[')
        nanoloom_refuse(path, "holds records; save an array of numbers");
    size_t length = *type == '\'' ? strcspn(type + 1, "'") : sizeof found.type;
    if (length >= sizeof found.type || !read_shape(&found, shape))
        damaged(path);
    memcpy(found.type, type + 1, length);
    found.by_columns = strncmp(order, "True", 4) == 0;
    free(text);
    return found;
}

/* Whether an element type is the one that is wanted: bytes have no order, and a bf16 no
 * type of numpy's own. */
static int same_type(const char *type, const char *wanted)
{
    int bytes = strcmp(wanted + 1, "V2") == 0;
    return strcmp(type, wanted) == 0 || (bytes && strcmp(type + 1, "V2") == 0);
}

/* f32 for <f4; the text itself where nanoloom has no such type. */
static const char *type_name(const char *type)
{
    for (int32_t element = 0; element < NANOLOOM_ELEMENTS; element++)
        if (same_type(type, nanoloom_element_numpy(element)))
            return nanoloom_element_name(element);
    return type;
}

static int same_shape(const struct header *found, const struct nanoloom_tensor *tensor)
{
    if (found->rank != tensor->rank)
        return 0;
    for (int32_t axis = 0; axis < tensor->rank; axis++)
        if (found->shape[axis] != tensor->shape[axis])
            return 0;
    return 1;
}

/* Refuses an array that does not fit.  wanted: the input's shape in words. */
static void check(const struct header *found, const struct nanoloom_tensor *tensor,
                  int fits, const char *wanted, const char *path)
{
    char given[NANOLOOM_SHAPE_TEXT];
    if (!same_type(found->type, nanoloom_element_numpy(tensor->element)) || !fits)
        nanoloom_refuse(path, "holds %s%s, input %s is %s%s", type_name(found->type),
                        nanoloom_shape_text(given, found->rank, found->shape),
                        tensor->name, nanoloom_element_name(tensor->element), wanted);
    if (found->by_columns && found->rank > 1)
        nanoloom_refuse(path, "is stored by columns; save numpy.ascontiguousarray of it");
}

static FILE *opened(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        nanoloom_refuse(path, "cannot be read: %s", strerror(errno));
    return file;
}

void nanoloom_npy_shape(const char *path, const struct nanoloom_tensor *tensor,
                        const char *wanted, int64_t *shape)
{
    FILE *file = opened(path);
    if (fseek(file, 0, SEEK_CUR))
        nanoloom_refuse(path, "is a pipe, and sizes are read first: name a file");
    struct header found = read_header(file, path);
    check(&found, tensor, found.rank == tensor->rank, wanted, path);
    memcpy(shape, found.shape, sizeof *shape * (size_t)found.rank);
    fclose(file);
}

void nanoloom_npy_read(const char *path, const struct nanoloom_tensor *tensor,
                       void *memory)
{
    char wanted[NANOLOOM_SHAPE_TEXT];
    nanoloom_shape_text(wanted, tensor->rank, tensor->shape);
    FILE *file = opened(path);
    struct header found = read_header(file, path);
    check(&found, tensor, same_shape(&found, tensor), wanted, path);
    size_t need = (size_t)nanoloom_tensor_bytes(tensor);
    size_t count = read_some(file, memory, need, path);
    if (count < need)
        nanoloom_refuse(path, "is cut off: its array needs %zu bytes, %zu are there",
                        need, count);
    fclose(file);
}

/* (2, 3), and (2,) for one axis, as Python writes a tuple. */
static size_t write_shape(char *text, const struct nanoloom_tensor *tensor)
{
    size_t used = (size_t)sprintf(text, "(");
    for (int32_t axis = 0; axis < tensor->rank; axis++)
        used += (size_t)sprintf(text + used, "%s%" PRId64, axis ? ", " : "",
                                tensor->shape[axis]);
    return used + (size_t)sprintf(text + used, tensor->rank == 1 ? ",)" : ")");
}

/* The whole header, to be freed, and its length; NULL where memory is out. */
static char *new_header(const struct nanoloom_tensor *tensor, size_t *length)
{
    size_t begin = MAGIC_BYTES + 4, used = begin;
    char *head = malloc(begin + KEYS_TEXT + (size_t)tensor->rank * AXIS_TEXT + ALIGNMENT);
    if (!head)
        return NULL;
    used += (size_t)sprintf(head + used, "{'descr': '%s', 'fortran_order': False, 'shape': ",
                            nanoloom_element_numpy(tensor->element));
    used += write_shape(head + used, tensor);
    used += (size_t)sprintf(head + used, ", }");
    while ((used + 1) % ALIGNMENT)
        head[used++] = ' ';
    head[used++] = '\n';
    memcpy(head, magic, MAGIC_BYTES);
    head[MAGIC_BYTES] = 1; /* version 1.0 */
    head[MAGIC_BYTES + 1] = 0;
    head[MAGIC_BYTES + 2] = (char)((used - begin) & 0xff);
    head[MAGIC_BYTES + 3] = (char)((used - begin) >> 8);
    *length = used;
    return head;
}

int nanoloom_npy_write(FILE *file, const struct nanoloom_tensor *tensor,
                       const void *memory)
{
    size_t length, bytes = (size_t)nanoloom_tensor_bytes(tensor);
    char *head = new_header(tensor, &length);
    if (!head)
        return 0;
    int whole = fwrite(head, 1, length, file) == length &&
                fwrite(memory, 1, bytes, file) == bytes;
    free(head);
    return whole;
}
