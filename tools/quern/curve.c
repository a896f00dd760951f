/* SPDX-License-Identifier: MIT
 *
 * From top to bottom: a title, the plot with one dot for each loss and a line through their
 * averages, the powers of ten of the rate. The y axis ends a little above the first loss: what is
 * higher has diverged.
 */
#include "curve.h"
#include "file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* In pixels. */
enum { WIDTH = 800, LEFT = 70, RIGHT = 20, TOP = 44, PLOT = 320, BOTTOM = TOP + PLOT, FONT = 12 };
enum { Y_TICKS = 5 };

struct drawing {
    const struct curve *curve;
    FILE *out;
    double low, high; /* losses at the ends of the y axis */
};

static double x_of(const struct drawing *d, double lr)
{
    const qn_lr_range *r = &d->curve->range;
    return LEFT + (WIDTH - LEFT - RIGHT) * log(lr / r->least) / log(r->most / r->least);
}

static double y_of(const struct drawing *d, double loss)
{
    const double share = (loss - d->low) / (d->high - d->low);
    return BOTTOM - PLOT * fmin(share, 1);
}

static void find_ends(struct drawing *d)
{
    const struct curve *c = d->curve;
    d->low = c->losses[0];
    for (int64_t i = 0; i < c->count; i++)
        d->low = fmin(d->low, fmin(c->losses[i], c->smoothed[i]));
    d->high = c->smoothed[0] + 0.2 * (c->smoothed[0] - d->low);
    if (d->high <= d->low)
        d->high = d->low + 1;
}

static void draw_axes(const struct drawing *d)
{
    const qn_lr_range *r = &d->curve->range;
    for (int i = 0; i <= Y_TICKS; i++) {
        const double loss = d->low + (d->high - d->low) * i / Y_TICKS, y = y_of(d, loss);
        fprintf(d->out,
                "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n",
                LEFT, y, WIDTH - RIGHT, LEFT - 6, y + FONT / 3.0, loss);
    }
    for (int power = (int)ceil(log10(r->least) - 1e-9); pow(10, power) <= r->most * (1 + 1e-9);
         power++)
        fprintf(d->out,
                "<path d=\"M%.1f %dv6\" stroke=\"#666\"/>\n"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">1e%d</text>\n",
                x_of(d, pow(10, power)), BOTTOM, x_of(d, pow(10, power)), BOTTOM + 20, power);
    fprintf(d->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">learning rate</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, BOTTOM + 40);
}

static void draw_losses(const struct drawing *d)
{
    const struct curve *c = d->curve;
    for (int64_t i = 0; i < c->count; i++)
        fprintf(d->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2\" fill=\"#a9d6e5\"/>\n",
                x_of(d, qn_lr_range_at(&c->range, i)), y_of(d, c->losses[i]));
    fprintf(d->out, "<path fill=\"none\" stroke=\"#264653\" stroke-width=\"2\" d=\"");
    for (int64_t i = 0; i < c->count; i++)
        fprintf(d->out, "%c%.1f %.1f", i ? 'L' : 'M', x_of(d, qn_lr_range_at(&c->range, i)),
                y_of(d, c->smoothed[i]));
    fprintf(d->out, "\"/>\n");
}

static void draw_found(const struct drawing *d)
{
    const double lr = d->curve->found.lr;
    if (lr > 0)
        fprintf(d->out,
                "<path d=\"M%.1f %dV%d\" stroke=\"#d1495b\" stroke-dasharray=\"4 3\"/>\n"
                "<text x=\"%.1f\" y=\"%d\" fill=\"#d1495b\">%.2g</text>\n",
                x_of(d, lr), TOP, BOTTOM, x_of(d, lr) + 5, TOP + FONT, lr);
}

static void draw_all(const struct drawing *d)
{
    fprintf(d->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"%d\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
            "<text x=\"%d\" y=\"24\">loss over learning rate: %" PRId64 " updates</text>\n",
            WIDTH, BOTTOM + 52, FONT, LEFT, d->curve->count);
    draw_axes(d);
    draw_losses(d);
    draw_found(d);
    fprintf(d->out, "</svg>\n");
}

int curve_draw(const struct curve *curve, const char *path, struct failure *failure)
{
    char *text = NULL;
    size_t size = 0;
    struct drawing d = {.curve = curve, .out = open_memstream(&text, &size)};
    if (!d.out)
        return failure_set(failure, CODE_FAILED, "out of memory");
    find_ends(&d);
    draw_all(&d);
    const int code = fclose(d.out) ? failure_set(failure, CODE_FAILED, "out of memory")
                                   : file_replace(path, text, failure);
    free(text);
    return code;
}
