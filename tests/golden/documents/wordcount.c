/* Counts the words of standard input, as wc -w does. */
#include <ctype.h>
#include <stdio.h>

struct counts {
    unsigned long words;
    unsigned long lines;
};

static int is_word(int c)
{
    return c != EOF && !isspace(c);
}

/* Reads to the end of the stream. Returns 0, or -1 when reading failed. */
static int count(FILE *stream, struct counts *counts)
{
    int previous = ' ';
    int c;

    while ((c = getc(stream)) != EOF) {
        if (c == '\n') {
            counts->lines++;
        }
        if (is_word(c) && !is_word(previous)) {
            counts->words++;
        }
        previous = c;
    }
    return ferror(stream) ? -1 : 0;
}

int main(void)
{
    struct counts counts = {0, 0};

    if (count(stdin, &counts) != 0) {
        perror("wordcount");
        return 1;
    }
    printf("%lu words in %lu lines\n", counts.words, counts.lines);
    return 0;
}
