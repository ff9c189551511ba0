/* An example target on UDP: cc -std=c99 -D_POSIX_C_SOURCE=200112L udp_target.c -lm -o udp_target
 *
 *   ./udp_target 5005
 *
 * It prints what it would do. Replace the three functions by your controller's. A real device also
 * comes to rest by itself when it hears nothing for some seconds.
 */
#include "sfihilo_line.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static int apply(const sfi_number *policy, int count) {
    for (int i = 0; i < count; i++) {
        if (strcmp(policy[i].name, "torque") == 0 && policy[i].value > 60.0) return 1; /* own limit */
    }
    printf("apply");
    for (int i = 0; i < count; i++) printf(" %s=%.17g", policy[i].name, policy[i].value);
    printf("\n");
    return 0;
}

static int measure(sfi_number *outcome, int most) {
    if (most < 2) return 0;
    printf("measure\n");
    outcome[0] = (sfi_number){"comfort", 6.5};
    outcome[1] = (sfi_number){"speed", NAN};
    return 2;
}

static void stop(void) { printf("stop\n"); }

int main(int count, char **words) {
    static sfi_target target = {.apply = apply, .measure = measure, .stop = stop};
    char line[2 * SFI_LONGEST], reply[SFI_LONGEST + 1];
    struct sockaddr_in own = {0}, sender;
    socklen_t size = sizeof own;
    int wire = socket(AF_INET, SOCK_DGRAM, 0);
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* INADDR_ANY: other machines too */
    own.sin_port = htons((uint16_t)(count > 1 ? atoi(words[1]) : 5005));
    if (wire < 0 || bind(wire, (struct sockaddr *)&own, sizeof own) != 0) return 1;
    getsockname(wire, (struct sockaddr *)&own, &size);
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("port %d\n", ntohs(own.sin_port));
    for (;;) {
        size = sizeof sender;
        ssize_t length = recvfrom(wire, line, sizeof line, 0, (struct sockaddr *)&sender, &size);
        if (length <= 0) continue;
        int answered = sfi_reply(&target, line, (size_t)length, reply);
        if (answered > 0) sendto(wire, reply, (size_t)answered, 0, (struct sockaddr *)&sender, size);
    }
}
