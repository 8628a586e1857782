/*
 * merge.c
 *	  k-way merge, in both directions, with a tree of losers.
 *
 * Each inner node of the tree keeps the cursor that lost the comparison there;
 * the winner of all is kept beside it.  When the winner moves on, only the
 * nodes between its leaf and the root are played again: one comparison a level,
 * where a heap takes two (Knuth, The Art of Computer Programming, volume 3,
 * 5.4.1).
 *
 * Knows neither runs nor buffer pages.  Since (key, TID) is a total order the
 * result does not depend on the order of the children.
 */
#include "postgres.h"

#include "merge/merge.h"
#include "miscadmin.h"

/* A child, with what decides most comparisons beside it. */
typedef struct Player
{
	uint64		rank;			/* prefix of the key, inverted if backward */
	LsmCursor  *cursor;			/* NULL: at its end, loses against all */
} Player;

typedef struct MergeCursor
{
	LsmCursor	base;
	LsmKeySpace *ks;
	bool		forward;
	int			count;			/* children */
	LsmCursor **children;
	Player		winner;
	int			winner_child;
	Player	   *losers;			/* of node i, from 1 to count - 1 */
	int		   *loser_children;
} MergeCursor;

static inline Player
player(MergeCursor *m, int child)
{
	LsmCursor  *cursor = m->children[child];
	Player		p;

	p.cursor = cursor->valid ? cursor : NULL;
	if (!m->ks->encoded)
		p.rank = 0;
	else
		p.rank = m->forward ? cursor->prefix : ~cursor->prefix;
	return p;
}

/* Does a come before b in the direction of the merge? */
static inline bool
beats(MergeCursor *m, const Player *a, const Player *b)
{
	int			c;

	if (b->cursor == NULL)
		return true;
	if (a->cursor == NULL)
		return false;
	if (a->rank != b->rank)
		return a->rank < b->rank;
	c = lsm_key_compare(m->ks, a->cursor->entry, b->cursor->entry);
	return m->forward ? c < 0 : c > 0;
}

/* Play out the tree below a node; leaves follow the inner nodes. */
static int
play(MergeCursor *m, int node, Player *winner)
{
	Player		left;
	Player		right;
	int			left_child;
	int			right_child;

	if (node >= m->count)
	{
		*winner = player(m, node - m->count);
		return node - m->count;
	}
	left_child = play(m, 2 * node, &left);
	right_child = play(m, 2 * node + 1, &right);
	if (beats(m, &left, &right))
	{
		m->losers[node] = right;
		m->loser_children[node] = right_child;
		*winner = left;
		return left_child;
	}
	m->losers[node] = left;
	m->loser_children[node] = left_child;
	*winner = right;
	return right_child;
}

static inline void
take_winner(MergeCursor *m)
{
	m->base.valid = m->winner.cursor != NULL;
	if (m->base.valid)
	{
		m->base.at_page = m->winner.cursor->at_page;
		m->base.entry = m->winner.cursor->entry;
		m->base.prefix = m->winner.cursor->prefix;
	}
}

static void
seek(LsmCursor *base, const LsmBound *from, const LsmBound *limit, ScanDirection direction)
{
	MergeCursor *m = (MergeCursor *) base;

	m->forward = ScanDirectionIsForward(direction);
	for (int i = 0; i < m->count; i++)
	{
		lsm_cursor_seek(m->children[i], from, limit, direction);
		CHECK_FOR_INTERRUPTS();
	}
	m->winner.cursor = NULL;
	if (m->count > 0)
		m->winner_child = play(m, 1, &m->winner);
	take_winner(m);
}

/* The winner has moved on: play its games again. */
static inline void
replay(MergeCursor *m)
{
	int			child = m->winner_child;
	Player		moving = player(m, child);

	for (int node = (m->count + child) / 2; node >= 1; node /= 2)
	{
		if (beats(m, &m->losers[node], &moving))
		{
			Player		loser = moving;
			int			loser_child = child;

			moving = m->losers[node];
			child = m->loser_children[node];
			m->losers[node] = loser;
			m->loser_children[node] = loser_child;
		}
	}
	m->winner = moving;
	m->winner_child = child;
	take_winner(m);
}

static void
next(LsmCursor *base)
{
	MergeCursor *m = (MergeCursor *) base;

	lsm_cursor_next(m->winner.cursor);
	replay(m);
}

/*
 * The winner's page, if its last entry would win, too.  It has to be compared
 * with those that lost against the winner itself: they have beaten the others.
 */
static Page
page(LsmCursor *base, const LsmEntry **last)
{
	MergeCursor *m = (MergeCursor *) base;
	Page		result = lsm_cursor_page(m->winner.cursor, last);

	if (result == NULL)
		return NULL;
	for (int node = (m->count + m->winner_child) / 2; node >= 1; node /= 2)
	{
		LsmCursor  *loser = m->losers[node].cursor;

		if (loser != NULL && lsm_key_compare(m->ks, *last, loser->entry) >= 0)
			return NULL;
	}
	return result;
}

static void
skip_page(LsmCursor *base)
{
	MergeCursor *m = (MergeCursor *) base;

	lsm_cursor_skip_page(m->winner.cursor);
	replay(m);
}

static void
close_cursor(LsmCursor *base)
{
	MergeCursor *m = (MergeCursor *) base;

	for (int i = 0; i < m->count; i++)
		lsm_cursor_close(m->children[i]);
	pfree(m->children);
	pfree(m->losers);
	pfree(m->loser_children);
	pfree(m);
}

static const LsmCursorOps merge_ops = {seek, next, close_cursor, page, skip_page};

/* Merge children, which it closes with itself.  Takes over the array. */
LsmCursor *
lsm_merge_create(LsmKeySpace *ks, LsmCursor **children, int count)
{
	MergeCursor *m;

	if (count == 1)
	{
		LsmCursor  *child = children[0];

		pfree(children);
		return child;
	}
	m = palloc0(sizeof(MergeCursor));
	m->base.ops = &merge_ops;
	m->ks = ks;
	m->count = count;
	m->children = children;
	m->losers = palloc(Max(1, count) * sizeof(Player));
	m->loser_children = palloc(Max(1, count) * sizeof(int));
	return &m->base;
}
