import QtQuick
import QtQuick.Controls.Basic
import QtQuick.Layouts
import Wsh

Item {
    ColumnLayout {
        anchors.fill: parent
        spacing: 0
        RowLayout {
            Layout.fillWidth: true
            Layout.margins: 8
            spacing: 8
            TextField {
                id: needle
                objectName: "find"
                placeholderText: "Find in this terminal"
                placeholderTextColor: look.c.text_soft
                color: look.c.text
                Layout.preferredWidth: 240
                background: Rectangle { radius: 6; color: look.c.sunken; border.color: needle.activeFocus ? look.c.accent : look.c.edge }
                onAccepted: app.find(text)
            }
            Item { Layout.fillWidth: true }
            PlainButton { text: "Copy"; tip: "Ctrl+Shift+C"; onClicked: terminal.copy() }
            PlainButton { text: "Paste"; tip: "Ctrl+Shift+V"; onClicked: terminal.paste() }
            PlainButton { text: "A−"; tip: "Smaller type (Ctrl+−)"; onClicked: terminal.fontSize -= 1 }
            PlainButton { text: "A+"; tip: "Larger type (Ctrl+=)"; onClicked: terminal.fontSize += 1 }
        }
        Rectangle { Layout.fillWidth: true; Layout.preferredHeight: 1; color: look.c.edge }
        Item {
            Layout.fillWidth: true
            Layout.fillHeight: true
            Rectangle { anchors.fill: parent; color: look.c.terminal_ground }
            TerminalItem {
                id: terminal
                objectName: "terminal"
                anchors { fill: parent; margins: 8; rightMargin: 16 }
                theme: look.theme
                fontSize: 14
                focus: app.page === "terminal"
                Accessible.role: Accessible.Terminal
                Accessible.name: "Terminal"
                Component.onCompleted: app.connectTerminal(terminal)
            }
            ScrollBar {
                id: bar
                anchors { right: parent.right; top: parent.top; bottom: parent.bottom }
                visible: terminal.history > 0
                readonly property int page: Math.max(1, Math.floor(terminal.height / 18))
                size: page / (page + terminal.history)
                position: 1 - size - terminal.scrolledBy / (page + terminal.history)
                policy: ScrollBar.AlwaysOn
            }
            Text {
                visible: app.selected === ""
                anchors.centerIn: parent
                text: "Choose a terminal on the left, or open one with New."
                color: look.c.text_soft
            }
        }
    }
    Connections { target: app; function onSelectedChanged() { if (app.page === "terminal") terminal.forceActiveFocus() } }
}
