/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_FLAME_H
#define STACKD_CLIENT_RENDER_FLAME_H

/*
 * A flame graph: the frames of many stacks as a tree, with the sum of the values of each frame, and
 * its place in the picture. Each frame can have two values, of what is drawn and of what it is
 * compared with. The program ends when memory runs out. Main thread.
 */

#include <stddef.h>
#include <stdint.h>

struct intern;

enum flame_kind { FLAME_NAME, FLAME_USER, FLAME_KERNEL };
enum flame_side { FLAME_NEW, FLAME_BASE, FLAME_SIDES };

enum {
	/* Names are cut to this many bytes. */
	FLAME_NAME_MAX = 1000,
	/* Names and frames take at most this many bytes: later frames are not added. */
	FLAME_BYTES_MAX = 256 * 1024 * 1024,
};

struct flame_frame {
	size_t parent; /* its number; always less than that of the frame */
	size_t name;   /* its number among the names */
	enum flame_kind kind;
	size_t depth;		    /* 0 for the frame of all */
	int64_t value[FLAME_SIDES]; /* after flame_place() with those of the frames that it calls */
	/* The values of all that is in the same row to the left of it; set by flame_place(). */
	int64_t start[FLAME_SIDES];
};

struct flame {
	struct intern *names;
	struct intern *keys;	    /* parent, name and kind of each frame but the first */
	struct flame_frame *frames; /* frames[0] stands for all */
	size_t n, capacity;
	size_t bytes_max; /* FLAME_BYTES_MAX */
	size_t n_missing; /* how many times a frame could not be added */
};

void flame_init(struct flame *flame);
void flame_fini(struct flame *flame);

/*
 * Returns the number of the frame with that name and kind below a parent; adds it if need be. The
 * name is escaped. If there is no room for it, returns the parent, which then has the value itself.
 */
size_t flame_child(struct flame *flame, size_t parent, const char *name, enum flame_kind kind);

void flame_add(struct flame *flame, size_t frame, enum flame_side side, int64_t value);

/* Sums the values up, and places the frames that one frame calls side by side, by name. */
void flame_place(struct flame *flame);

const char *flame_name(const struct flame *flame, size_t frame);

#endif
