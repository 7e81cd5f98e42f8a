/* SPDX-License-Identifier: Apache-2.0 */
/* BATON_DLL marks what the libraries export; everything else is hidden. Plain C. */
#ifndef BATON_SUPPORT_EXPORT_H_
#define BATON_SUPPORT_EXPORT_H_

#ifndef BATON_DLL
#define BATON_DLL __attribute__((visibility("default")))
#endif

#endif /* BATON_SUPPORT_EXPORT_H_ */
