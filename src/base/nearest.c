/* SPDX-License-Identifier: MIT
 *
 * The known names that are nearest to an unknown one, for messages that refuse it.
 */
#include <quern/log.h>

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 100 };

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Of optimal string alignment: rows[i][j] is the distance of the first i characters of `a` from the
 * first j of `b`; three rows are alive. A '*' in `a` is any characters, a '?' any one. */
static int distance(const char *a, int length_a, const char *b, int length_b)
{
    int rows[3][LONGEST + 1];
    for (int j = 0; j <= length_b; j++)
        rows[0][j] = j;
    for (int i = 1; i <= length_a; i++) {
        int *row = rows[i % 3];
        const int *above = rows[(i + 2) % 3], *second = rows[(i + 1) % 3];
        row[0] = above[0] + (a[i - 1] != '*');
        for (int j = 1; j <= length_b; j++) {
            if (a[i - 1] == '*') {
                row[j] = least(above[j], row[j - 1]);
                continue;
            }
            row[j] = above[j - 1] + (a[i - 1] != '?' && !same(a[i - 1], b[j - 1]));
            row[j] = least(row[j], 1 + least(above[j], row[j - 1]));
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                row[j] = least(row[j], second[j - 2] + 1);
        }
    }
    return rows[length_a % 3][length_b];
}

void qn_nearest_offer(qn_nearest *nearest, const char *name)
{
    if (!nearest || !nearest->text || !name)
        return;
    const size_t written = strlen(nearest->text), known = strlen(name);
    if (written > LONGEST || known > LONGEST)
        return;
    const int longer = (int)(written > known ? written : known);
    const int far = distance(nearest->text, (int)written, name, (int)known);
    if (far > (longer > 3 ? longer / 3 : 1) || far >= longer)
        return;
    if (nearest->count && far < nearest->distance)
        nearest->count = 0;
    if (nearest->count && (far > nearest->distance || nearest->count == QN_NEAREST_NAMES))
        return;
    nearest->distance = far;
    nearest->name[nearest->count++] = name;
}

const char *qn_nearest_hint(const qn_nearest *nearest, char text[QN_NEAREST_BYTES])
{
    int length = 0;
    *text = 0;
    for (int i = 0; nearest && i < nearest->count; i++)
        length += snprintf(text + length, (size_t)(QN_NEAREST_BYTES - length), "%s%.64s",
                           i == 0                   ? "; did you mean "
                           : i + 1 < nearest->count ? ", "
                                                    : " or ",
                           nearest->name[i]);
    if (length)
        snprintf(text + length, (size_t)(QN_NEAREST_BYTES - length), "?");
    return text;
}
