/* Lines of the SFIHILO console for real-time targets: C99, no memory allocation, one header.
 *
 *   SFI1 <link> <number> <VERB> [<name>=<value> ...] *<CRC-32 of all before " *", 8 hex digits>
 *
 * Call sfi_reply for every received line (one per datagram, or one per '\n' of a stream) and send
 * back what it writes. Each command is executed once, however often and late its line arrives.
 * docs/how-to/devices.md describes the rules.
 */
#ifndef SFIHILO_LINE_H
#define SFIHILO_LINE_H

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SFI_LONGEST 1200 /* bytes of a line */
#define SFI_MOST 32      /* names in a line */

typedef struct {
    const char *name;
    double value; /* NaN: not measured */
} sfi_number;

typedef struct {
    int (*apply)(const sfi_number *policy, int count); /* 0: set; others: refused */
    int (*measure)(sfi_number *outcome, int most);     /* how many; -1: the walk is not over */
    void (*stop)(void);
    /* The rest belongs to sfi_reply; begin with zeros. */
    uint64_t link;
    uint32_t last; /* number of the last command */
    uint32_t at;   /* number of the APPLY in force; set it to 0 when the target stops by itself */
    char answer[SFI_LONGEST + 1];
} sfi_target;

static uint32_t sfi_crc32(const char *text, size_t length) {
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned char)text[i];
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (0xEDB88320u & (0u - (crc & 1u)));
    }
    return crc ^ 0xFFFFFFFFu;
}

/* Writes a line into `reply`, which has room for SFI_LONGEST + 1 bytes; returns its length. */
static int sfi_write(char *reply, uint64_t link, uint32_t number, const char *words) {
    int length = snprintf(reply, SFI_LONGEST - 11, "SFI1 %" PRIu64 " %" PRIu32 " %s", link, number, words);
    if (length < 0 || length >= SFI_LONGEST - 11) return 0;
    uint32_t crc = sfi_crc32(reply, (size_t)length);
    return length + snprintf(reply + length, 12, " *%08" PRIX32 "\n", crc);
}

/* Executes APPLY, MEASURE or STOP; writes the words of the answer. */
static void sfi_execute(sfi_target *target, uint32_t number, const char *verb, char *rest, char *words) {
    sfi_number numbers[SFI_MOST];
    int count = 0;
    strcpy(words, "ACK");
    if (strcmp(verb, "STOP") == 0) {
        target->at = 0;
        target->stop();
    } else if (strcmp(verb, "MEASURE") == 0) {
        count = target->measure(numbers, SFI_MOST);
        if (count < 0) strcpy(words, "NAK why=later");
        size_t used = strlen(words);
        for (int i = 0; i < count; i++) {
            int more = snprintf(words + used, SFI_LONGEST - used, " %s=%.17g", numbers[i].name, numbers[i].value);
            if (more < 0 || used + (size_t)more >= SFI_LONGEST - 100) {
                strcpy(words, "NAK why=refused");
                return;
            }
            used += (size_t)more;
        }
    } else {
        int good = strcmp(verb, "APPLY") == 0;
        for (char *word = strtok(rest, " "); good && word != NULL; word = strtok(NULL, " ")) {
            char *equals = strchr(word, '='), *end = NULL;
            good = equals != NULL && count < SFI_MOST;
            if (!good) break;
            *equals = '\0';
            numbers[count].name = word;
            numbers[count].value = strtod(equals + 1, &end);
            good = end != equals + 1 && *end == '\0' && isfinite(numbers[count].value);
            count++;
        }
        if (good && count > 0 && target->apply(numbers, count) == 0) target->at = number;
        else strcpy(words, "NAK why=refused");
    }
}

/* The line to send back in `reply` (SFI_LONGEST + 1 bytes); returns its length, 0 for none. */
static int sfi_reply(sfi_target *target, const char *received, size_t length, char *reply) {
    char line[SFI_LONGEST + 1], words[SFI_LONGEST + 1], verb[9];
    uint64_t link;
    uint32_t number;
    int place = 0;
    while (length > 0 && (received[length - 1] == '\n' || received[length - 1] == '\r')) length--;
    if (length < 12 || length > SFI_LONGEST || memchr(received, '\0', length) != NULL) return 0;
    memcpy(line, received, length);
    line[length] = '\0';
    char *star = line + length - 10; /* " *" and eight digits */
    char expected[12];
    snprintf(expected, sizeof expected, " *%08" PRIX32, sfi_crc32(line, length - 10));
    if (strcmp(star, expected) != 0) return 0; /* changed on its way: as if it were lost */
    *star = '\0';
    if (sscanf(line, "SFI1 %" SCNu64 " %" SCNu32 " %8[A-Z]%n", &link, &number, verb, &place) != 3) return 0;
    if (strcmp(verb, "ACK") == 0 || strcmp(verb, "NAK") == 0) return 0;

    if (strcmp(verb, "HELLO") == 0) {
        if (link < target->link) return sfi_write(reply, link, number, "NAK why=link");
        if (link > target->link) {
            target->link = link;
            target->last = target->at = 0;
            target->answer[0] = '\0';
        }
        if (number > target->last) {
            target->last = number;
            target->answer[0] = '\0';
        }
        return sfi_write(reply, link, number, "ACK");
    }
    if (strcmp(verb, "STOP") == 0 && link != target->link) { /* whoever says so */
        target->at = 0;
        target->stop();
        return sfi_write(reply, link, number, "ACK");
    }
    if (link != target->link) return sfi_write(reply, link, number, "NAK why=link");
    if (strcmp(verb, "BEAT") == 0) {
        snprintf(words, sizeof words, "BEAT at=%" PRIu32, target->at);
        return sfi_write(reply, link, number, words);
    }
    if (number == target->last && target->answer[0] != '\0') return sfi_write(reply, link, number, target->answer);
    if (number <= target->last) return sfi_write(reply, link, number, "NAK why=old");
    target->last = number;
    sfi_execute(target, number, verb, line + place, target->answer);
    return sfi_write(reply, link, number, target->answer);
}

#endif
