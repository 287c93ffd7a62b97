// The seed's source: for every key read on standard input, the key and the
// string `testtesttest` on standard output. Both engines run this program, so
// that what a study compares is the engines.
//
//   source             RowBinary: UInt64 in; UInt64, String out
//   source tsv         TabSeparated: decimal in; decimal, string out
//
// Keys are answered as they arrive; the answer is flushed whenever the input
// runs dry, so that the program also serves EXECUTABLE_POOL, which never
// closes standard input.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define VALUE "testtesttest"
enum {
    value_size = sizeof(VALUE) - 1,
    key_size = 8,
    tsv_key_size_max = 20, // 18446744073709551615
    input_size = 64 * 1024,
    output_size = 256 * 1024,
};
_Static_assert(value_size < 128, "the length is a varint of one byte");
// One full input buffer's answers always fit into the output buffer.
_Static_assert(input_size / key_size * (key_size + 1 + value_size) <= output_size,
               "RowBinary answers fit");

static char input[input_size];
static char output[output_size];

static int write_all(const char *from, size_t size) {
    while (size > 0) {
        ssize_t n = write(STDOUT_FILENO, from, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        from += n;
        size -= (size_t)n;
    }
    return 0;
}

// Answers the whole keys in input[0..filled); says how many bytes it used.
static size_t answer_row_binary(size_t filled, size_t *written) {
    size_t used = 0, out = 0;
    for (; used + key_size <= filled; used += key_size) {
        memcpy(output + out, input + used, key_size);
        output[out + key_size] = value_size;
        memcpy(output + out + key_size + 1, VALUE, value_size);
        out += key_size + 1 + value_size;
    }
    *written = out;
    return used;
}

// The same for lines. Flushes by itself: a short key makes a longer answer.
static size_t answer_tsv(size_t filled, size_t *written) {
    size_t used = 0, out = 0;
    for (;;) {
        char *end = memchr(input + used, '\n', filled - used);
        if (end == NULL)
            break;
        size_t size = (size_t)(end - (input + used));
        if (size > tsv_key_size_max)
            _exit(2);
        if (out + size + 2 + value_size > output_size) {
            if (write_all(output, out) != 0)
                _exit(1);
            out = 0;
        }
        memcpy(output + out, input + used, size);
        out += size;
        output[out++] = '\t';
        memcpy(output + out, VALUE "\n", value_size + 1);
        out += value_size + 1;
        used += size + 1;
    }
    *written = out;
    return used;
}

int main(int argc, char **argv) {
    int tsv = argc > 1 && strcmp(argv[1], "tsv") == 0;
    if (argc > 2 || (argc == 2 && !tsv)) {
        fprintf(stderr, "usage: %s [tsv]\n", argv[0]);
        return 2;
    }
    size_t filled = 0;
    for (;;) {
        ssize_t n = read(STDIN_FILENO, input + filled, input_size - filled);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return 1;
        if (n == 0)
            break;
        filled += (size_t)n;
        size_t written = 0;
        size_t used = tsv ? answer_tsv(filled, &written)
                          : answer_row_binary(filled, &written);
        if (write_all(output, written) != 0)
            return 1;
        memmove(input, input + used, filled - used);
        filled -= used;
        if (filled == input_size)
            return 2; // a line that long is no key
    }
    return filled == 0 ? 0 : 2; // a key cut short
}
