/* SPDX-License-Identifier: MIT
 *
 * PNG and JPEG files, decoded to 8 bits a channel. What a file holds decides what it is, not its
 * name. Every file is untrusted: what does not hold together is refused with one line, `FILE:
 * reason`. Pictures come upright, as EXIF data say it (of a PNG: those before its pixels). Gamma,
 * colour profiles and transparency are left alone.
 * Thread-safety: Safe.
 */
#ifndef QN_IO_IMAGE_H
#define QN_IO_IMAGE_H

#include <quern/log.h>
#include <stdbool.h>
#include <stdint.h>

/* What the header of a file says. */
struct qn_image_facts {
    int64_t bytes;     /* of the file */
    int width, height; /* of the picture, upright */
    int orientation;   /* of what is stored, see orientation.h */
    int channels;      /* as stored: 1 grey, 3 anything else */
    bool
        indices; /* can be read as QN_IMAGE_INDEX: a PNG, grey or of a palette, of at most 8 bits */
};

/* What pixels become; the value is the number of bytes of one. */
enum qn_image_form {
    QN_IMAGE_INDEX,    /* one byte: the index in the palette, or the grey value as stored */
    QN_IMAGE_GREY = 1, /* of a colour image: (19595 R + 38470 G + 7471 B + 32768) / 65536 */
    QN_IMAGE_RGB = 3,
};

/* Reads the header. QN_ERR_IO: not readable; QN_ERR_FORMAT: no image, larger than 2^27 pixels, or
 * more pixels than the file can hold. */
qn_status qn_image_look(struct qn_image_facts *facts, const char *path, const struct qn_log *log);

/* The bytes that qn_image_read needs: pixels are converted where they are, but turned from one half
 * to the other. */
int64_t qn_image_bytes(const struct qn_image_facts *facts, enum qn_image_form form);
/* Reads all pixels, row after row, the channels of a pixel side by side. `facts` are what
 * qn_image_look said: a file that has changed since is refused. So is a damaged one, even where the
 * decoder would guess the rest. */
qn_status qn_image_read(uint8_t *pixels, const char *path, const struct qn_image_facts *facts,
                        enum qn_image_form form, const struct qn_log *log);

#endif
