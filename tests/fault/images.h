/*
 * images: the crash states of a moment. Each is opened with the real recovery and compared with what the
 * oracle allows; then more is written to it, and it crashes again.
 */
#ifndef TESTS_FAULT_IMAGES_H
#define TESTS_FAULT_IMAGES_H

#include "fault/subject.h"

/* How an image is made. */
typedef struct crash {
    int power_loss;       /* else a kill */
    fake_crash_plan plan;
    uint64_t tear;        /* of a kill */
} crash;

/* From here on every call of the subject's file system is a moment at which images are made. */
void images_watch(subject *s);
void images_ignore(subject *s);

/* Makes the images of this very moment. `running`: a call is about to be made, so that a kill may tear it. */
void images_of_moment(subject *s, int running);
/* Makes one image and checks it. */
void images_check(subject *s, const crash *how);
/* Makes one image, which becomes the subject's file system, and opens it: 0 where that failed. */
int images_continue(subject *s, const crash *how);

#endif
