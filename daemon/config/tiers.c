/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/config/tiers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "common/base.h"
#include "common/quantity.h"
#include "daemon/config/keys.h"

#define BLANKS " \t"

/*
 * The allowed lengths of windows, and the allowed times for which a tier keeps them. Readers of the
 * database assume that no window is longer than an hour.
 */
#define LENGTH_MIN (100 * NS_PER_MS)
#define LENGTH_MAX (1800 * NS_PER_S)
#define KEEP_MIN   (10 * NS_PER_S)
#define KEEP_MAX   (INT64_C(3650) * 86400 * NS_PER_S)

enum { FIELDS = 3, QUOTE = 40 };

/* One tier of the setting, as text. */
struct piece {
	const char *text;
	size_t length;
	size_t number; /* number of the tier, beginning with 1 */
};

static int fail(const struct piece *piece, const char *reason, char *why, size_t size)
{
	int shown = (int)(piece->length < QUOTE ? piece->length : QUOTE);

	snprintf(why, size, "tier %zu \"%.*s\": %s", piece->number, shown, piece->text, reason);
	return -EINVAL;
}

/*
 * Parses a percentage such as "25%". Returns false if the text has another form, or is above 100 %.
 */
static bool share_parse(const char *text, size_t length, uint32_t *out)
{
	uint32_t share = 0;
	size_t i;

	if (length < 2 || length > 4 || text[length - 1] != '%')
		return false;
	for (i = 0; i + 1 < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		share = 10 * share + (uint32_t)(text[i] - '0');
	}
	*out = share;
	return share <= 100;
}

static int tier_parse(const struct piece *piece, struct config_tier *out, char *why, size_t size)
{
	const char *at[FIELDS], *end = piece->text + piece->length;
	size_t n = 0, length[FIELDS];
	const char *from;

	for (from = piece->text; n < FIELDS; n++) {
		const char *colon = memchr(from, ':', (size_t)(end - from));

		at[n] = from;
		length[n] = (size_t)((colon ? colon : end) - from);
		if (!colon)
			break;
		from = colon + 1;
	}
	if (n != FIELDS - 1)
		return fail(piece, "must be LENGTH:KEEP:SHARE, like 60s:24h:35%", why, size);
	if (quantity_parse(at[0], length[0], &config_durations, &out->length_ns) ||
	    out->length_ns < LENGTH_MIN || out->length_ns > LENGTH_MAX)
		return fail(piece, "the length of its windows must be between 100ms and 30min", why,
			    size);
	if (quantity_parse(at[1], length[1], &config_durations, &out->keep_ns) ||
	    out->keep_ns < KEEP_MIN || out->keep_ns > KEEP_MAX)
		return fail(piece, "the time it reaches back must be between 10s and 3650d", why,
			    size);
	if (!share_parse(at[2], length[2], &out->share))
		return fail(piece, "its share must be between 0% and 100%", why, size);
	return 0;
}

/* Checks that a tier fits the tiers before it. */
static int tier_check(const struct piece *piece, const struct config_tiers *tiers, char *why,
		      size_t size)
{
	const struct config_tier *tier = &tiers->tier[piece->number - 1], *before = tier - 1;
	uint32_t shares = 0;
	size_t i;

	if (piece->number == 1)
		return 0;
	if (tier->length_ns <= before->length_ns || tier->length_ns % before->length_ns)
		return fail(piece,
			    "the length of its windows must be a multiple of the length in the "
			    "tier before",
			    why, size);
	if (tier->keep_ns <= before->keep_ns)
		return fail(piece, "must reach further back than the tier before", why, size);
	for (i = 0; i < piece->number; i++)
		shares += tiers->tier[i].share;
	return shares > 100 ? fail(piece, "the shares must not add up to more than 100%", why, size)
			    : 0;
}

/*
 * Sets *piece to the text up to the next comma, without blanks around it. Returns the text after
 * the comma, or NULL if there is none.
 */
static const char *piece_take(const char *text, struct piece *piece)
{
	size_t length = strcspn(text, ",");
	const char *rest = text[length] ? text + length + 1 : NULL;

	while (length && strchr(BLANKS, text[0])) {
		text++;
		length--;
	}
	while (length && strchr(BLANKS, text[length - 1]))
		length--;
	piece->text = text;
	piece->length = length;
	piece->number++;
	return rest;
}

int config_tiers_parse(const char *text, struct config_tiers *out, char *why, size_t size)
{
	struct config_tiers tiers = {};
	struct piece piece = {};
	int r;

	while (text) {
		text = piece_take(text, &piece);
		if (piece.number > CONFIG_TIERS_MAX)
			return fail(&piece, "there may be at most 4 tiers", why, size);
		r = tier_parse(&piece, &tiers.tier[tiers.n], why, size);
		if (r)
			return r;
		r = tier_check(&piece, &tiers, why, size);
		if (r)
			return r;
		tiers.n++;
	}
	if (!tiers.tier[tiers.n - 1].share)
		return fail(&piece, "the last tier must have a share", why, size);
	*out = tiers;
	return 0;
}

void config_tiers_print(const struct config_tiers *tiers, FILE *out)
{
	char length[32], keep[32];
	size_t i;

	for (i = 0; i < tiers->n; i++) {
		quantity_print(&config_durations, (uint64_t)tiers->tier[i].length_ns, length,
			       sizeof(length));
		quantity_print(&config_durations, (uint64_t)tiers->tier[i].keep_ns, keep,
			       sizeof(keep));
		fprintf(out, "%s%s:%s:%" PRIu32 "%%", i ? ", " : "", length, keep,
			tiers->tier[i].share);
	}
}
